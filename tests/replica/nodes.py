"""Several brokers' replicas of one partition in one process, with real logs and fetchers, and no sockets.

Use it for followers, leader changes and in-sync replicas. The test is the controller: `lead` names the leader. Time
does not pass; `settle` gives every fetcher a number of turns of the loop.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import Executor, Future
from pathlib import Path
from typing import Any

from ixion.broker.log.config import LogConfig
from ixion.broker.log.manager import LogManager
from ixion.broker.log.prepare import Origin
from ixion.broker.log.reader import read
from ixion.broker.log.view import Bound
from ixion.broker.replica.fetch import FetchTerms
from ixion.broker.replica.fetch_requests import FetchLimits
from ixion.broker.replica.fetcher import Fetcher, FetcherSettings
from ixion.broker.replica.manager import ReplicaManager
from ixion.broker.replica.partition import Partition
from ixion.broker.replica.results import AppendResult, FetchResult, FetchWish
from ixion.broker.replica.siblings import follow_sibling
from ixion.clients.address import Address
from ixion.clients.faults import UnreachableError
from ixion.language.model.delay_names import sibling_id, sibling_of
from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.codec.sink import joined
from ixion.language.protocol.messages.k01_fetch import (
    EpochEndOffset,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    PartitionData,
)
from ixion.language.protocol.messages.k02_list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from ixion.language.protocol.notation import Struct
from ixion.language.protocol.registry import ApiKey
from ixion.language.records.batches import iter_batches
from ixion.timer import LoopTimer, ManualClock
from tests.log.support import NOW, QuickFiles, batch

TOPIC_ID = bytes(range(16))
NAMES = {TOPIC_ID: "t", sibling_id(TOPIC_ID): sibling_of("t")}
KEY = ("t", 0)
SETTINGS = FetcherSettings(
    limits=FetchLimits(max_wait_ms=0, min_bytes=1, max_bytes=1 << 20),
    partition_bytes=1 << 20,
    backoff_s=0.0,
    request_timeout_s=1.0,
)


class Inline(Executor):
    """A thread that is done at once."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


class Node:
    def __init__(self, nodes: Nodes, number: int, path: Path) -> None:
        self.number = number
        self.nodes = nodes
        self.path = path
        self.fetcher: Fetcher | None = None
        self.open()

    def open(self) -> None:
        loop = asyncio.get_running_loop()
        self.logs = LogManager(
            [str(self.path)],
            clock_ms=lambda: NOW + self.nodes.clock.now_ms,
            config_of=lambda _: self.nodes.config,
            files=QuickFiles(),
        )
        self.logs.load()
        self.replicas = ReplicaManager(
            self.number,
            self.logs,
            timer=LoopTimer("test", loop=loop, clock=self.nodes.clock),
            loop=loop,
            workers=Inline(),
            clock_ms=lambda: NOW + self.nodes.clock.now_ms,
            monotonic_ms=lambda: self.nodes.clock.now_ms,
            min_isr_of=lambda _: self.nodes.min_isr,
            max_lag_ms=10_000,
        )
        self.replicas.on_isr_wanted = self.nodes.isr_wanted
        self.nodes.opened(self)

    @property
    def partition(self) -> Partition:
        return self.replicas.partitions[KEY]

    def produce(self, *values: bytes, acks: int = -1) -> list[AppendResult]:
        """The list fills when the produce is over."""
        over: list[AppendResult] = []
        data = batch(*values)
        self.replicas.append(60_000, acks, Origin.CLIENT, [("t", 0, data)], over.extend)
        return over

    def values(self, below: int = 1 << 60) -> list[tuple[int, int, bytes]]:
        """(offset, leader epoch, value) of every record below an offset."""
        log = self.partition.log
        found: list[tuple[int, int, bytes]] = []
        offset = log.log_start
        while offset < min(below, log.end_offset):
            for view in iter_batches(read(log, offset, 1 << 20, Bound.END).records):
                found += [(int(each.offset), int(view.leader_epoch), bytes(each.value or b"")) for each in view]
                offset = int(view.last_offset) + 1
        return [each for each in found if each[0] < below]

    async def restart(self, *, clean: bool = True) -> None:
        """Stop and come back with what is on the disk, in no role yet."""
        if self.fetcher is not None:
            await self.fetcher.close()
            self.fetcher = None
        self.replicas.shutdown()
        if clean:
            self.logs.close()
        else:
            self.logs.abandon()
        self.open()

    # As a leader sees followers.

    def serve(self, request: Struct) -> Struct:
        if isinstance(request, ListOffsetsRequest):
            return self._list_offsets(request)
        assert isinstance(request, FetchRequest)
        wishes = [
            FetchWish(
                *(NAMES[topic.topic_id], topic.topic_id, each.partition, each.fetch_offset, each.partition_max_bytes),
                *(each.current_leader_epoch, each.last_fetched_epoch, each.log_start_offset),
            )
            for topic in request.topics
            for each in topic.partitions
        ]
        terms = FetchTerms(
            replica_id=request.replica_state.replica_id,
            replica_epoch=request.replica_state.replica_epoch,
            max_wait_ms=0,
            min_bytes=1,
            max_bytes=request.max_bytes,
            bound=Bound.END,
        )
        results: list[FetchResult] = []
        self.nodes.arrange(wishes)
        self.replicas.fetch(terms, wishes, results.extend)
        return FetchResponse(
            throttle_time_ms=0,
            session_id=0,
            responses=tuple(
                FetchableTopicResponse(topic_id=result.wish.topic_id, partitions=(answer_of(result),))
                for result in results
            ),
        )

    def _list_offsets(self, request: ListOffsetsRequest) -> ListOffsetsResponse:
        (wish,) = request.topics[0].partitions
        name = request.topics[0].name
        log = self.replicas.partitions[name, 0].log
        offset = log.end_offset if wish.timestamp == -1 else log.log_start
        found = ListOffsetsPartitionResponse(partition_index=0, error_code=0, timestamp=-1, offset=offset)
        return ListOffsetsResponse(
            throttle_time_ms=0, topics=(ListOffsetsTopicResponse(name=name, partitions=(found,)),)
        )


def answer_of(result: FetchResult) -> PartitionData:
    diverging = EpochEndOffset()
    if result.diverging_epoch >= 0:
        diverging = EpochEndOffset(epoch=result.diverging_epoch, end_offset=result.diverging_end)
    return PartitionData(
        partition_index=result.wish.number,
        error_code=int(result.code),
        high_watermark=result.high_watermark,
        last_stable_offset=result.last_stable_offset,
        log_start_offset=result.log_start,
        diverging_epoch=diverging,
        aborted_transactions=None,
        records=joined([result.records]),
    )


class DirectPeer:
    """The way to a leader: a call in the same process. A leader that is cut off cannot be reached."""

    def __init__(self, nodes: Nodes, source: int, address: Address) -> None:
        self.address = address
        self._nodes = nodes
        self._source = source

    async def version(self, api: ApiKey, *, oldest: int = 0, newest: int) -> int:
        return newest

    async def ask(self, api: ApiKey, version: int, request: Struct) -> Struct:
        leader = self._nodes.nodes[self.address.port]
        await asyncio.sleep(0)
        self._check(leader.number)
        answer = leader.serve(request)
        self._nodes.asked.append((self._source, request, answer))
        await asyncio.sleep(0)
        self._check(leader.number)  # the answer was lost
        return answer

    def _check(self, leader: int) -> None:
        if leader in self._nodes.cut_off or self._source in self._nodes.cut_off:
            raise UnreachableError("cut off")

    def close(self) -> None:
        """There is no connection."""


class Nodes:
    def __init__(self, path: Path, count: int = 3, min_isr: int = 1) -> None:
        self.clock = ManualClock(1000)
        self.config = LogConfig()
        self.settings = SETTINGS
        self.min_isr = min_isr
        self.cut_off: set[int] = set()
        self.asked: list[tuple[int, Struct, Struct]] = []
        self.wanted: list[tuple[Partition, tuple[int, ...]]] = []
        self.epoch = -1
        self.leader = -1
        self.isr: tuple[int, ...] = tuple(range(1, count + 1))
        self.nodes = {number: Node(self, number, path / str(number)) for number in range(1, count + 1)}

    def opened(self, node: Node) -> None:
        """A node has started."""

    def arrange(self, wishes: list[FetchWish]) -> None:
        """The order in which a leader reads partitions: those of a session go round."""

    def isr_wanted(self, partition: Partition, isr: tuple[int, ...]) -> None:
        self.wanted.append((partition, isr))

    def grant(self) -> None:
        """The controller does what leaders of the current epoch want."""
        wanted, self.wanted = self.wanted, []
        for partition, isr in wanted:
            if partition.still_wants(isr) and partition.leader_epoch == self.epoch:
                self.isr = isr
                partition.partition_epoch += 1
                if partition.set_isr(isr):
                    self.nodes[partition.node_id].replicas.high_watermark_moved(partition)

    def refuse(self) -> None:
        """The controller refuses what leaders want."""
        for partition, _ in self.wanted:
            partition.set_isr(partition.isr)
        self.wanted = []

    async def lead(
        self, leader: int, *, told: tuple[int, ...] | None = None, isr: tuple[int, ...] | None = None
    ) -> None:
        """A new leader in the next epoch. Only the brokers in `told` learn of it, the new leader among them."""
        self.epoch += 1
        self.leader = leader
        self.isr = self.isr if isr is None else isr
        for number in self.nodes if told is None else told:
            await self.tell(number)

    async def tell(self, number: int) -> None:
        """LeaderAndIsr of the present leader."""
        node = self.nodes[number]
        if node.fetcher is not None:
            await node.fetcher.close()
            node.fetcher = None
        replicas = tuple(self.nodes)
        if number == self.leader:
            node.replicas.lead("t", 0, TOPIC_ID, self.epoch, self.isr, replicas, self.epoch)
            return
        partition = node.replicas.follow("t", 0, TOPIC_ID, self.leader, self.epoch, self.isr, replicas, self.epoch)
        address = Address("node", self.leader)
        node.fetcher = Fetcher(
            f"broker-{number}-fetcher-0",
            node.replicas,
            address_of_leader=lambda: address,
            connect=lambda where, _name, _timeout_s: DirectPeer(self, number, where),
            broker_epoch=lambda: 100 + number,
            settings=lambda: self.settings,
            workers=Inline(),
        )
        node.fetcher.add(partition, follow_sibling(node.replicas, partition))

    async def settle(self, turns: int = 60) -> None:
        for _ in range(turns):
            await asyncio.sleep(0)

    async def close(self) -> None:
        for node in self.nodes.values():
            if node.fetcher is not None:
                await node.fetcher.close()
            node.replicas.shutdown()
            node.logs.abandon()


def codes(over: list[AppendResult]) -> list[ErrorCode]:
    return [result.code for result in over]
