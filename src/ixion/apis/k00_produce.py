"""Produce, 3 to 13 (advertised from 0, see the registry): append batches, one per partition, and answer as acks says.

Topics that are unknown, internal or misnamed are answered apart from the good ones. acks is 0, 1 or -1; with 0 there is
no answer, and an error closes the connection, which is the only way left to be heard. Version 5 brought the log start
offset in the answer, 7 zstd, 8 errors per record (KIP-467), 10 the leader to go to instead (KIP-951), 12 adding
partitions to transactions by writing to them (KIP-890), 13 topic ids.
The one codec that needs inflating is the one of the batch; see `ixion.records.validate`.
"""

from __future__ import annotations

from typing import Final, cast

from ixion.apis.call import Call, Handle, Outcome
from ixion.apis.first_write import TransactionalAppend, is_transactional
from ixion.apis.leaders import addresses, leader_of
from ixion.apis.services import Services
from ixion.config.listeners import listeners
from ixion.coordinators.txn.coordinator import TransactionCoordinator
from ixion.log.prepare import Origin
from ixion.metadata.image import ClusterImage
from ixion.model.errors import ErrorCode
from ixion.protocol.messages.k00_produce import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceResponse,
)
from ixion.records.layout import ATTRIBUTES, Buffer
from ixion.replica.append import Entry, GiveUp
from ixion.replica.append_result import AppendResult
from ixion.replica.internal_topic import INTERNAL
from ixion.replica.manager import ReplicaManager
from ixion.wire.answer import LATER

ZSTD: Final = 4
ZSTD_SINCE: Final = 7
LEADER_SINCE: Final = 10
IDS_SINCE: Final = 13


def make(services: Services) -> Handle:
    return Produce(services).handle


class Produce:
    def __init__(self, services: Services) -> None:
        self._image: Final[ClusterImage] = services.image
        self._replicas: Final[ReplicaManager] = services.replicas
        self._transactions: Final[TransactionCoordinator] = services.transactions
        self._internal_writers: Final = listeners(services.config.current).internal_writers

    def handle(self, call: Call) -> Outcome:
        request = cast(ProduceRequest, call.body)
        acks = request.acks
        if acks < -1 or acks > 1:
            return refuse_all(request, ErrorCode.INVALID_REQUIRED_ACKS)
        production = Production(self, call, acks)
        entries: list[Entry] = []
        transactional = False
        version = call.version
        for topic in request.topic_data:
            name = topic.name
            fault = ErrorCode.NONE
            if version >= IDS_SINCE:
                known = self._image.ids.get(topic.topic_id)
                if known is None:
                    fault = ErrorCode.UNKNOWN_TOPIC_ID
                else:
                    name = known.name
            elif name not in self._image.topics:
                fault = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            if name in INTERNAL and fault == ErrorCode.NONE and call.listener not in self._internal_writers:
                fault = ErrorCode.INVALID_TOPIC_EXCEPTION
            production.topics.append((topic.name, topic.topic_id, len(topic.partition_data)))
            for data in topic.partition_data:
                records = data.records
                code = fault
                if code == ErrorCode.NONE and (records is None or len(records) == 0):
                    code = ErrorCode.INVALID_RECORD
                elif code == ErrorCode.NONE and version < ZSTD_SINCE and is_zstd(records):
                    code = ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
                if code == ErrorCode.NONE and records is not None:
                    transactional = transactional or is_transactional(records)
                    production.places.append(len(entries))
                    entries.append((name, data.index, records))
                else:
                    production.places.append(-1 - len(production.refused))
                    refused = AppendResult(name, data.index)
                    refused.code = code
                    production.refused.append(refused)
        if transactional:
            TransactionalAppend(
                self._transactions,
                self._replicas,
                request.transactional_id,
                version,
                request.timeout_ms,
                acks,
                entries,
                production.finish,
                production.waits,
            ).run()
        elif entries:
            self._replicas.append(request.timeout_ms, acks, Origin.CLIENT, entries, production.finish, production.waits)
        else:
            production.finish([])
        return production.outcome()

    def answer(self, call: Call, production: Production, results: list[AppendResult]) -> Outcome:
        version = call.version
        places = production.places
        topics: list[TopicProduceResponse] = []
        elsewhere: set[int] = set()
        slot = 0
        for name, topic_id, count in production.topics:
            partitions: list[PartitionProduceResponse] = []
            for place in places[slot : slot + count]:
                result = results[place] if place >= 0 else production.refused[-1 - place]
                if result.code == ErrorCode.NONE:
                    partitions.append(
                        PartitionProduceResponse(
                            index=result.number,
                            error_code=0,
                            base_offset=result.first_offset,
                            log_append_time_ms=result.append_time,
                            log_start_offset=result.log_start,
                        )
                    )
                else:
                    self._replicas.counters.produce_failed(result.code)
                    partitions.append(self._failed(result, version, elsewhere))
            slot += count
            topics.append(TopicProduceResponse(name=name, topic_id=topic_id, partition_responses=tuple(partitions)))
        if not elsewhere:
            return ProduceResponse(responses=tuple(topics))
        return ProduceResponse(
            responses=tuple(topics),
            node_endpoints=tuple(
                [
                    NodeEndpoint(node_id=number, host=host, port=port, rack=rack)
                    for number, host, port, rack in addresses(self._image, call.listener, elsewhere)
                ]
            ),
        )

    def _failed(self, result: AppendResult, version: int, elsewhere: set[int]) -> PartitionProduceResponse:
        leader = LeaderIdAndEpoch()
        if result.code == ErrorCode.NOT_LEADER_OR_FOLLOWER and version >= LEADER_SINCE:
            broker, epoch = leader_of(self._image, result.topic, result.number)
            leader = LeaderIdAndEpoch(leader_id=broker, leader_epoch=epoch)
            elsewhere.add(broker)
        return PartitionProduceResponse(
            index=result.number,
            error_code=int(result.code),
            base_offset=-1,
            log_start_offset=result.log_start,
            record_errors=tuple(
                [
                    BatchIndexAndErrorMessage(batch_index=index, batch_index_error_message=message)
                    for index, message in result.record_errors
                ]
            ),
            error_message=result.message,
            current_leader=leader,
        )


class Production:
    """One produce on its way; `finish` may come before `handle` has returned, or long after.

    It knows the request by names and numbers only. While it waits it must not keep the records alive: the memory pool
    has their bytes back once they are appended.
    """

    def __init__(self, produce: Produce, call: Call, acks: int) -> None:
        self._produce = produce
        self._call = call
        self._acks = acks
        self.topics: list[tuple[str, bytes, int]] = []  # name, id and number of partitions, as requested
        # For each partition of the request: the place of its result, or -1, -2 … for the first, second … refused.
        self.places: list[int] = []
        self.refused: list[AppendResult] = []
        self._results: list[AppendResult] | None = None
        self._later = False

    def waits(self, give_up: GiveUp) -> None:
        """All records are appended."""
        self._call.release()
        self._call.on_gone(give_up)

    def finish(self, results: list[AppendResult]) -> None:
        self._results = results
        if self._later:
            answer = self.outcome()
            if answer is None:
                self._call.no_response()
            else:
                self._call.respond(cast(ProduceResponse, answer))

    def outcome(self) -> Outcome:
        results = self._results
        if results is None:
            self._later = True
            return LATER
        if self._acks != 0:
            return self._produce.answer(self._call, self, results)
        failures = self.refused + [result for result in results if result.code != ErrorCode.NONE]
        if failures:
            self._call.request.connection.close("acks_0_failed")
        return None


def refuse_all(request: ProduceRequest, code: ErrorCode) -> Outcome:
    """acks is not one of three, so whatever it is the client is told."""
    return ProduceResponse(
        responses=tuple(
            [
                TopicProduceResponse(
                    name=topic.name,
                    topic_id=topic.topic_id,
                    partition_responses=tuple(
                        [
                            PartitionProduceResponse(index=data.index, error_code=int(code), base_offset=-1)
                            for data in topic.partition_data
                        ]
                    ),
                )
                for topic in request.topic_data
            ]
        )
    )


def is_zstd(records: Buffer | None) -> bool:
    return records is not None and len(records) > ATTRIBUTES + 1 and records[ATTRIBUTES + 1] & 7 == ZSTD
