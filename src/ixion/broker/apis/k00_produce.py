"""Produce, 3 to 13 (advertised from 0, see the registry): append batches, one per partition; acks says when to respond.

Partitions of unknown, internal or invalid topics get an error; the others are appended. acks is 0, 1 or -1; with 0
there is no response, and an error closes the connection, which is the only way to report it. Version 5 brought the log
start offset in the response, 7 zstd, 8 errors per record (KIP-467), 10 the current leader (KIP-951), 12 adding
partitions to transactions by writing to them (KIP-890), 13 topic ids. A request with more than `STEP` partitions is
checked, appended and encoded in turns of the loop. Batches that take long to validate are checked on a worker thread
(`replica.checking`) before any is appended; the connection is not read meanwhile.
"""

# This module is compiled: see setup.py.

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, cast

from ixion.broker.acl.numbers import TOPIC, TRANSACTIONAL_ID, WRITE
from ixion.broker.apis.call import Call, Handle, Outcome
from ixion.broker.apis.guards.guard import IN_HANDLER
from ixion.broker.apis.leaders import addresses, leader_of
from ixion.broker.apis.owner import owner_of
from ixion.broker.apis.repeats import as_sent
from ixion.broker.apis.services import Services
from ixion.broker.apis.topic_ids import PRODUCE_BY_ID_SINCE
from ixion.broker.log.prepare import Origin
from ixion.broker.metadata.image import ClusterImage
from ixion.broker.replica.append import NONE_CHECKED, Entry, GiveUp
from ixion.broker.replica.checking import Check, Checked
from ixion.broker.replica.internal_topic import INTERNAL
from ixion.broker.replica.manager import ReplicaManager
from ixion.broker.replica.results import AppendResult
from ixion.config.listeners import listeners
from ixion.config.topic import DELIVERY_DELAY_TARGET
from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.messages.k00_produce import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
    TopicProduceResponse,
)
from ixion.language.records.layout import ATTRIBUTES, Buffer, is_transactional
from ixion.language.wire.answer import LATER, Later
from ixion.timer.turns import Steps

if TYPE_CHECKING:
    from ixion.broker.acl.rights import Rights

# Each entry has records. All of them are appended; Kafka would append only the last batch of a partition.
REPEATS: Final = {"topic_data": as_sent(partition_data=as_sent())}
RIGHTS: Final = IN_HANDLER  # WRITE topic; transactional records: WRITE transactional id

ZSTD: Final = 4
ZSTD_SINCE: Final = 7
LEADER_SINCE: Final = 10
STEP: Final = 128  # partitions checked or encoded in one step, some 100 µs


def make(services: Services) -> Handle:
    return Produce(services).handle


class Produce:
    def __init__(self, services: Services) -> None:
        self._image: Final[ClusterImage] = services.image
        self.replicas: Final[ReplicaManager] = services.replicas
        self._make_transactions: Final = services.make_transactions
        self._internal_writers: Final = listeners(services.config.current).internal_writers

    def handle(self, call: Call) -> Outcome:
        production = Production(self, call)
        if production.take_some():
            call.request.lane.run(production.rest(), production.taken)
        else:
            production.append()
        return production.outcome()

    def fault_of(self, call: Call, topic: TopicProduceData) -> tuple[str, ErrorCode]:
        """The name of the topic, and the error if nothing can be appended to it."""
        name = topic.name
        acks = cast(ProduceRequest, call.body).acks
        if acks < -1 or acks > 1:
            return name, ErrorCode.INVALID_REQUIRED_ACKS
        if call.version >= PRODUCE_BY_ID_SINCE:
            known = self._image.ids.get(topic.topic_id)
            if known is None:
                return name, ErrorCode.UNKNOWN_TOPIC_ID
            name = known.name
        rights = call.rights
        if rights is not None:
            if not rights.may(WRITE, TOPIC, name):
                return name, ErrorCode.TOPIC_AUTHORIZATION_FAILED
            target = (self._image.topic_config(name) or {}).get(DELIVERY_DELAY_TARGET.name)
            if target and not rights.may(WRITE, TOPIC, target):  # delayed records are delivered to the target topic
                return name, ErrorCode.TOPIC_AUTHORIZATION_FAILED
        if call.version < PRODUCE_BY_ID_SINCE and name not in self._image.topics:
            return name, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if name in INTERNAL and call.listener not in self._internal_writers:
            return name, ErrorCode.INVALID_TOPIC_EXCEPTION
        return name, ErrorCode.NONE

    def append(self, production: Production, call: Call, entries: list[Entry], checked: Checked) -> None:
        request = cast(ProduceRequest, call.body)
        if production.transactional and not may_in_transaction(call.rights, request.transactional_id):
            production.refuse(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED, entries)
        elif production.transactional and entries:
            from ixion.broker.apis.first_write import TransactionalAppend  # imports the transaction coordinator

            TransactionalAppend(
                self._make_transactions(),
                self.replicas,
                request.transactional_id,
                call.version,
                request.timeout_ms,
                request.acks,
                entries,
                production.finish,
                production.waits,
                checked,
            ).run()
        elif entries:
            self.replicas.append(
                request.timeout_ms, request.acks, Origin.CLIENT, entries, production.finish, production.waits, checked
            )
        else:
            production.finish([])

    def partition_answer(self, result: AppendResult, version: int, elsewhere: set[int]) -> PartitionProduceResponse:
        if result.code == ErrorCode.NONE:
            return PartitionProduceResponse(
                index=result.number,
                error_code=0,
                base_offset=result.first_offset,
                log_append_time_ms=result.append_time,
                log_start_offset=result.log_start,
            )
        self.replicas.counters.produce_failed(result.code)
        return self._failed(result, version, elsewhere)

    def response(self, call: Call, topics: list[TopicProduceResponse], elsewhere: set[int]) -> ProduceResponse:
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
            broker, epoch = leader_of(self._image, self.replicas, result.topic, result.number)
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
    """One produce in progress; `finish` may be called before `handle` has returned, or long after.

    It keeps names and numbers of the request, but not the records: once they are appended, their bytes are back in the
    memory pool. So the code that iterates over records, `STEP` partitions at a time, is in methods that store their
    position; the generators that call them have no reference to records.
    """

    def __init__(self, produce: Produce, call: Call) -> None:
        self._produce = produce
        self._call = call
        self._acks = cast(ProduceRequest, call.body).acks
        self.transactional = False
        self._topics: list[tuple[str, bytes, int]] = []  # name, id and number of partitions, as requested
        # For each partition of the request: the index of its result, or -1, -2 … for the first, second … refused one.
        self._places: list[int] = []
        self._refused: list[AppendResult] = []
        self._entries: list[Entry] = []
        self._to_check: list[Entry] = []  # entries whose batches are checked before the append
        self._check: Check | None = None  # of those entries
        self._partition = 0  # index of the next partition in the current topic
        self._name = ""  # name of the current topic
        self._fault = ErrorCode.NONE  # why nothing can be appended to the current topic
        self._results: list[AppendResult] | None = None
        self._answered: list[TopicProduceResponse] = []
        self._in_topic: list[PartitionProduceResponse] = []  # partitions of the current topic in the response
        self._slot = 0  # index of the next partition in the response
        self._elsewhere: set[int] = set()  # brokers that lead partitions of the request
        self._later = False
        self._error: Exception | None = None

    # First collect the records to append.

    def take_some(self) -> bool:
        """Check the next partitions of the request. True if there are more."""
        call = self._call
        topics = cast(ProduceRequest, call.body).topic_data
        left = STEP
        while True:
            if self._partition == 0:
                if len(self._topics) == len(topics):
                    return False
                topic = topics[len(self._topics)]
                self._name, self._fault = self._produce.fault_of(call, topic)
                self._topics.append((topic.name, topic.topic_id, len(topic.partition_data)))
            else:
                topic = topics[len(self._topics) - 1]
            first = self._partition
            some = topic.partition_data
            if first > 0 or len(some) > left:
                some = some[first : first + left]
            for data in some:
                self._take(data)
            left -= len(some) + 1
            self._partition = first + len(some)
            if self._partition == len(topic.partition_data):
                self._partition = 0
            if left <= 0 and (self._partition > 0 or len(self._topics) < len(topics)):
                return True

    def _take(self, data: PartitionProduceData) -> None:
        records = data.records
        code = self._fault
        if code != ErrorCode.NONE and records is not None and self._call.rights is not None:
            # Checked for every partition, also one of a bad topic: the right to the transactional id comes first.
            self.transactional = self.transactional or is_transactional(records)
        if code == ErrorCode.NONE and (records is None or len(records) == 0):
            code = ErrorCode.INVALID_RECORD
        elif code == ErrorCode.NONE and self._call.version < ZSTD_SINCE and is_zstd(records):
            code = ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
        if code == ErrorCode.NONE and records is not None:
            self.transactional = self.transactional or is_transactional(records)
            self._places.append(len(self._entries))
            entry = (self._name, data.index, records)
            self._entries.append(entry)
            if self._produce.replicas.checking.needed(self._name, data.index, records):
                self._to_check.append(entry)
        else:
            self._places.append(-1 - len(self._refused))
            refused = AppendResult(self._name, data.index)
            refused.code = code
            self._refused.append(refused)

    def refuse(self, code: ErrorCode, entries: list[Entry]) -> None:
        """Refuse the whole request."""
        results: list[AppendResult] = []
        for name, number, _ in entries:
            result = AppendResult(name, number)
            result.code = code
            results.append(result)
        for other in self._refused:
            other.code = code
        self.finish(results)

    def rest(self) -> Steps[None]:
        while self.take_some():
            yield

    def taken(self, _: None, error: Exception | None) -> None:
        if error is None:
            self.append()
        else:
            self._fail(error)

    def append(self) -> None:
        if not self._to_check:
            self._append(NONE_CHECKED, 0)
            return
        self._check = Check(owner_of(self._call), self._append)
        if self._check_next():
            self._call.request.lane.run(self._check_rest(), self._checked_rest)
        else:
            self._check_long()

    # Batches that might take long are checked before any is appended.

    def _check_next(self) -> bool:
        """Check a batch if that is quick. True if there are more."""
        check = self._check
        assert check is not None
        self._produce.replicas.checking.check_now(check, self._to_check.pop())
        return len(self._to_check) > 0

    def _check_rest(self) -> Steps[None]:
        while self._check_next():
            yield

    def _checked_rest(self, _: None, error: Exception | None) -> None:
        if error is None:
            self._check_long()
        else:
            self._fail(error)

    def _check_long(self) -> None:
        check = self._check
        assert check is not None
        checking = self._produce.replicas.checking
        checking.start(check)
        if check.work is not None:
            self._call.on_gone(partial(checking.leave, check))

    def _append(self, checked: Checked, used_ns: int) -> None:
        if self._check is not None:
            self._check = None
            self._call.request.on_gone(None)
            self._call.spend(used_ns)
        entries, self._entries = self._entries, []
        try:
            self._produce.append(self, self._call, entries, checked)
        except Exception as error:
            if not self._later:
                raise
            self._call.request.fail(error)

    def waits(self, give_up: GiveUp) -> None:
        """All records are appended."""
        self._call.release()
        self._call.on_gone(give_up)

    # Then build the response.

    def finish(self, results: list[AppendResult]) -> None:
        self._results = results
        if self._later:
            answer = self.outcome()
            if answer is None:
                self._call.no_response()
            elif not isinstance(answer, Later):
                self._call.respond(cast(ProduceResponse, answer))

    def outcome(self) -> Outcome:
        if self._error is not None:
            raise self._error
        results = self._results
        if results is None:
            self._later = True
            return LATER
        if self._acks != 0:
            if self._answer_some():
                self._later = True
                self._call.request.lane.run(self._answer_rest(), self._answered_all)
                return LATER
            return self._response()
        failures = self._refused + [result for result in results if result.code != ErrorCode.NONE]
        if failures:
            self._call.request.connection.close("acks_0_failed")
        return None

    def _answer_some(self) -> bool:
        """Add the next partitions to the response. True if there are more."""
        results = self._results
        assert results is not None
        produce, version, elsewhere = self._produce, self._call.version, self._elsewhere
        left = STEP
        while len(self._answered) < len(self._topics):
            name, topic_id, count = self._topics[len(self._answered)]
            partitions = self._in_topic
            for place in self._places[self._slot : self._slot + min(left, count - len(partitions))]:
                result = results[place] if place >= 0 else self._refused[-1 - place]
                partitions.append(produce.partition_answer(result, version, elsewhere))
                self._slot += 1
                left -= 1
            if len(partitions) < count:
                return True
            self._answered.append(
                TopicProduceResponse(name=name, topic_id=topic_id, partition_responses=tuple(partitions))
            )
            self._in_topic = []
            left -= 1
            if left <= 0 and len(self._answered) < len(self._topics):
                return True
        return False

    def _answer_rest(self) -> Steps[None]:
        while self._answer_some():
            yield

    def _answered_all(self, _: None, error: Exception | None) -> None:
        if error is None:
            self._call.respond(self._response())
        else:
            self._fail(error)

    def _response(self) -> ProduceResponse:
        return self._produce.response(self._call, self._answered, self._elsewhere)

    def _fail(self, error: Exception) -> None:
        if self._later:
            self._call.request.fail(error)
        else:
            self._error = error


def may_in_transaction(rights: Rights | None, transactional_id: str | None) -> bool:
    if rights is None:
        return True
    return transactional_id is not None and rights.may(WRITE, TRANSACTIONAL_ID, transactional_id)


def is_zstd(records: Buffer | None) -> bool:
    return records is not None and len(records) > ATTRIBUTES + 1 and records[ATTRIBUTES + 1] & 7 == ZSTD
