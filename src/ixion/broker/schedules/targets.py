"""How schedule topics reach their targets: partitions of other topics, on any broker.

Partitions that this broker leads are appended to and read here; other leaders get requests.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final, NamedTuple, cast

from ixion.broker.log.config import LogConfig
from ixion.broker.log.prepare import Origin
from ixion.broker.log.view import Bound, limit_of
from ixion.broker.replica.checking import Check, Checked
from ixion.broker.replica.internal_topic import INTERNAL
from ixion.broker.replica.results import AppendResult
from ixion.broker.schedules.journal import PIECE, batches
from ixion.clients.faults import error_code
from ixion.language.model.delay_names import is_sibling
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.protocol.messages.k00_produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from ixion.language.protocol.messages.k01_fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from ixion.language.protocol.messages.k02_list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from ixion.language.protocol.notation import Struct
from ixion.language.protocol.registry import ApiKey
from ixion.language.records.batch import BatchView
from ixion.language.records.batches import iter_complete_batches
from ixion.language.records.layout import Buffer

if TYPE_CHECKING:
    from ixion.broker.replica.manager import ReplicaManager
    from ixion.broker.replica.partition import Partition

TIMEOUT_MS: Final = 10_000  # for acks=all
LATEST: Final = -1
# Versions with topic names, which Apache Kafka speaks too.
PRODUCE: Final = (8, 9)
FETCH: Final = (4, 11)
LIST_OFFSETS: Final = (1, 6)


class Place(NamedTuple):
    leader: int  # -1: none
    config: LogConfig


# Broker, API, request, oldest and newest version.
Ask = Callable[[int, ApiKey, Struct, int, int], Awaitable[Struct]]


class Targets:
    """Loop thread only."""

    def __init__(
        self,
        replicas: ReplicaManager,
        *,
        find: Callable[[str, int], Place | None],
        ask: Ask,
        producer_id: Callable[[], Awaitable[int]],
    ) -> None:
        """`find` returns the leader of a partition, and its settings."""
        self._replicas = replicas
        self._find = find
        self._ask = ask
        self.producer_id: Final = producer_id

    def check(self, partition: Partition, name: str) -> LogConfig:
        """The settings of a target of a schedule topic. KafkaError if records cannot be delivered to it."""
        place = self._find(name, partition.number)
        if name == partition.topic:
            reason = "it is the topic itself"
        elif name in INTERNAL or is_sibling(name):
            reason = "it is an internal topic"
        elif place is None:
            reason = "there is no such partition"
        elif place.config.delays_records:
            reason = "it delays records itself (delivery.delay.mode=record)"
        else:
            return place.config
        message = f"{partition.log.name} delivers to {name}-{partition.number}: {reason}"
        raise KafkaError(ErrorCode.INVALID_RECORD, message)

    async def send(self, topic: str, number: int, records: bytes, count: int) -> int:
        """Produce a batch with acks=all; returns its end offset. KafkaError if it is refused or may have been lost."""
        if self._led_here(topic, number) is not None:
            return await self._append(topic, number, records)
        data = TopicProduceData(name=topic, partition_data=(PartitionProduceData(index=number, records=records),))
        request = ProduceRequest(acks=-1, timeout_ms=TIMEOUT_MS, topic_data=(data,))
        answer = cast(ProduceResponse, await self._ask_leader(topic, number, ApiKey.PRODUCE, request, *PRODUCE))
        found = answer.responses[0].partition_responses[0]
        raise_if(found.error_code, found.error_message or "")
        return found.base_offset + count if found.base_offset >= 0 else -1

    async def end_of(self, topic: str, number: int) -> int:
        """An end offset of a partition, perhaps not the latest."""
        local = self._led_here(topic, number)
        if local is not None:
            return limit_of(local.log, Bound.COMMITTED)  # what comes after it may be truncated
        wish = ListOffsetsPartition(partition_index=number, timestamp=LATEST)
        request = ListOffsetsRequest(replica_id=-1, topics=(ListOffsetsTopic(name=topic, partitions=(wish,)),))
        asked = self._ask_leader(topic, number, ApiKey.LIST_OFFSETS, request, *LIST_OFFSETS)
        found = cast(ListOffsetsResponse, await asked).topics[0].partitions[0]
        raise_if(found.error_code)
        return found.offset

    async def has(self, topic: str, number: int, offset: int, producer_id: int, sequence: int) -> bool:
        """Whether a partition has the batch of a producer that begins with `sequence`, at or after `offset`.

        KafkaError if it has, but not on every in-sync replica yet: the batch may be truncated.
        """

        def is_it(view: BatchView) -> bool:
            return bool(view.producer_id == producer_id and view.base_sequence == sequence)

        local = self._led_here(topic, number)
        if local is not None:
            log = local.log
            for view in batches(log, max(offset, log.log_start), PIECE, Bound.END):
                if is_it(view):
                    if view.last_offset < limit_of(log, Bound.COMMITTED):
                        return True
                    message = f"the replicas of {log.name} lack a delivery at offset {view.base_offset}"
                    raise KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND, message)
                await asyncio.sleep(0)
            return False
        while True:
            wish = FetchPartition(partition=number, fetch_offset=offset, partition_max_bytes=PIECE)
            topics = (FetchTopic(topic=topic, partitions=(wish,)),)
            request = FetchRequest(max_wait_ms=0, min_bytes=0, max_bytes=PIECE, topics=topics)
            answer = cast(FetchResponse, await self._ask_leader(topic, number, ApiKey.FETCH, request, *FETCH))
            data = answer.responses[0].partitions[0]
            if data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
                if data.log_start_offset <= offset:
                    return False  # the target ends before `offset`: it has lost records
                offset = data.log_start_offset
                continue
            raise_if(data.error_code)
            before = offset
            for view in iter_complete_batches(cast(Buffer, data.records or b"")):
                if is_it(view):
                    return True
                offset = max(offset, int(view.last_offset) + 1)
            if offset == before:
                return False

    # Internals.

    def _led_here(self, topic: str, number: int) -> Partition | None:
        partition = self._replicas.partition(topic, number)
        return partition if partition is not None and partition.leads else None

    async def _append(self, topic: str, number: int, records: bytes) -> int:
        over: asyncio.Future[AppendResult] = asyncio.get_running_loop().create_future()

        def done(results: list[AppendResult]) -> None:
            if not over.done():
                over.set_result(results[0])

        entry = (topic, number, records)

        def append(checked: Checked, _used_ns: int) -> None:
            self._replicas.append(TIMEOUT_MS, -1, Origin.CLIENT, [entry], done, checked=checked)

        checking, check = self._replicas.checking, Check(topic, append)
        if checking.needed(topic, number, records):
            checking.check_now(check, entry)
        checking.start(check)
        result = await over
        raise_if(result.code, result.message or "")
        return result.required

    async def _ask_leader(
        self, topic: str, number: int, api: ApiKey, request: Struct, oldest: int, newest: int
    ) -> Struct:
        place = self._find(topic, number)
        if place is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"unknown partition {topic}-{number}")
        if place.leader < 0:
            raise KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, f"{topic}-{number} has no leader")
        return await self._ask(place.leader, api, request, oldest, newest)


def raise_if(number: int, message: str = "") -> None:
    code = error_code(number)
    if code != ErrorCode.NONE:
        raise KafkaError(code, message or code.name)
