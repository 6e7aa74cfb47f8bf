"""Copies partitions from one leader: one task, one connection, one request in flight.

Each round fetches all partitions that are not paused, appends their records on the event loop, and truncates diverged
logs on worker threads. The leader's answer decides what happens to a partition:

- records: append, take the leader's high watermark and log start;
- a diverging epoch: truncate (`reconciling`) and fetch again;
- OFFSET_OUT_OF_RANGE: ask for the leader's offsets; truncate to its end, or start again at its log start;
- FENCED_LEADER_EPOCH: leave it: LeaderAndIsr with a newer epoch is under way;
- anything else, or a failed append: fetch it again after replica.fetch.backoff.ms. The other partitions continue.

The sibling of a partition, where its delayed records wait, is fetched with it, and limits what is appended to it
(`siblings`).

An answer counts only if the partition is still followed in the same role and from the requested offset: each role has
its own `Followed`, and the offset is compared.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Coroutine
from concurrent.futures import Executor
from typing import Any, Final, NamedTuple, Protocol, cast

from ixion.broker.log.log import Log
from ixion.broker.replica.fetch_requests import NEWEST, OLDEST, SESSION_ENDED, FetchLimits, FetchRequests, Place
from ixion.broker.replica.followed import Followed
from ixion.broker.replica.manager import ReplicaManager
from ixion.broker.replica.partition import Partition
from ixion.broker.replica.reconciling import cut_at
from ixion.clients.address import Address
from ixion.clients.faults import error_code
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.model.topic_partition import TopicPartition
from ixion.language.protocol.messages.k01_fetch import FetchRequest, FetchResponse, PartitionData
from ixion.language.protocol.messages.k02_list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from ixion.language.protocol.notation import Struct
from ixion.language.protocol.registry import ApiKey
from ixion.language.records.layout import Buffer
from ixion.timer.turns import Steps, in_turns

logger = logging.getLogger(__name__)

LATEST: Final = -1
EARLIEST: Final = -2
THROTTLE_S: Final = 0.1  # pause of a partition above follower.replication.throttled.rate
OFFSETS_NEWEST: Final = 9  # ListOffsets of Apache Kafka 3.9
# Normal for a moment while a leader changes or a topic is new, so these are not logged.
PASSING: Final = frozenset(
    {
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.LEADER_NOT_AVAILABLE,
    }
)


class FetcherSettings(NamedTuple):
    limits: FetchLimits
    partition_bytes: int
    backoff_s: float
    request_timeout_s: float


class Peer(Protocol):
    """A connection to a leader; `ixion.clients.channel.Channel` is the real one."""

    @property
    def address(self) -> Address: ...

    async def version(self, api: ApiKey, *, oldest: int = 0, newest: int) -> int: ...

    async def ask(self, api: ApiKey, version: int, request: Struct) -> Struct: ...

    def close(self) -> None: ...


class Fetcher:
    def __init__(
        self,
        name: str,
        replicas: ReplicaManager,
        *,
        address_of_leader: Callable[[], Address | None],
        connect: Callable[[Address, str, float], Peer],
        broker_epoch: Callable[[], int],
        settings: Callable[[], FetcherSettings],
        workers: Executor,
    ) -> None:
        self.name: Final = name
        self._replicas = replicas
        self._address_of_leader = address_of_leader
        self._connect = connect  # to an address, by the name of this fetcher, with a timeout in seconds
        self._broker_epoch = broker_epoch
        self._settings = settings
        self._workers = workers
        self._followed: dict[TopicPartition, Followed] = {}
        self._requests = FetchRequests(replicas.node_id)
        self._peer: Peer | None = None
        self._stirred = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._task = self._loop.create_task(self._run(), name=name)
        self._complaint = ""  # the last fault that was logged
        self._session_ended = False  # by the last answer: once is normal, twice in a row is a fault
        self._closed = False

    # For the owner.

    @property
    def followed(self) -> Collection[TopicPartition]:
        return self._followed.keys()

    def max_lag(self) -> int:
        return max((each.behind for each in self._followed.values() if each.behind > 0), default=0)

    def add(self, partition: Partition, sibling: Partition | None = None) -> None:
        followed = Followed(partition)
        if sibling is not None:
            self._follow_sibling(followed, sibling)  # first, so that its partition cannot fill the answer
        self._followed[partition.key] = followed
        self._stirred.set()

    def add_sibling(self, partition: Partition, sibling: Partition) -> None:
        """Also fetch a sibling for a partition that is already followed."""
        followed = self._followed.get(partition.key)
        if followed is not None and followed.sibling is None:
            self._follow_sibling(followed, sibling)
            self._stirred.set()

    def _follow_sibling(self, followed: Followed, sibling: Partition) -> None:
        self._followed[sibling.key] = followed.follow_sibling(sibling)
        self._requests.start_over()  # the leader must say again how far its notes go

    async def remove(self, keys: Collection[TopicPartition]) -> None:
        """Returns when nothing is appended to these partitions, or truncated, any more."""
        for key in keys:
            followed = self._followed.get(key)
            if followed is None:
                continue
            self._forget(followed)
            for each in (followed, followed.sibling):
                if each is not None and each.cutting is not None:
                    await asyncio.wait([each.cutting])

    def _forget(self, followed: Followed) -> None:
        """Forget the partition and its sibling. A broker that becomes the leader must not fetch the sibling."""
        self._followed.pop(followed.partition.key, None)
        if followed.sibling is not None:
            self._followed.pop(followed.sibling.partition.key, None)

    async def close(self) -> None:
        await self.remove(list(self._followed))
        self._closed = True
        self._task.cancel()
        if self._peer is not None:
            self._peer.close()
        await asyncio.wait([self._task])

    # The task.

    async def _run(self) -> None:
        while not self._closed:  # before Python 3.12 `wait_for` may swallow a cancellation
            try:
                ready = self._ready()
                if ready:
                    await self._fetch(ready)
                else:
                    await self._wait()
            except KafkaError as error:
                self._requests.start_over()
                self._complain(str(error))
                await asyncio.sleep(self._settings().backoff_s)
            except Exception:
                logger.exception("%s failed in one round and continues", self.name)
                self._requests.start_over()
                await asyncio.sleep(self._settings().backoff_s)

    def _ready(self) -> list[Followed]:
        now_s = self._loop.time()
        ready = [each for each in self._followed.values() if each.not_before_s <= now_s]
        quota = self._replicas.follower_quota
        if quota is None or not any(each.is_throttled for each in ready) or not quota.is_exceeded():
            return ready
        for each in ready:
            if each.is_throttled:
                each.not_before_s = now_s + THROTTLE_S
        return [each for each in ready if not each.is_throttled]

    async def _wait(self) -> None:
        """Wait until a partition is added, or the first pause ends."""
        self._stirred.clear()
        first_s = min((each.not_before_s for each in self._followed.values()), default=None)
        timeout_s = None if first_s is None else max(first_s - self._loop.time(), 0)
        try:
            await asyncio.wait_for(self._stirred.wait(), timeout_s)
        except TimeoutError:
            pass

    def _leader(self) -> Peer:
        address = self._address_of_leader()
        if address is None:
            raise KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, "the leader is not a live broker")
        if self._peer is None or self._peer.address != address:
            if self._peer is not None:
                self._peer.close()
            self._requests.start_over()
            self._peer = self._connect(address, self.name, self._settings().request_timeout_s)
        return self._peer

    async def _fetch(self, ready: list[Followed]) -> None:
        settings = self._settings()
        await self._cut_before_first(ready)
        leader = self._leader()
        asked = {each.place: (each, each.offset) for each in ready}
        wishes = {each.place: each.wish(settings.partition_bytes) for each in ready}
        version = await leader.version(ApiKey.FETCH, oldest=OLDEST, newest=NEWEST)
        request: FetchRequest = self._requests.next(wishes, settings.limits, self._broker_epoch(), version)
        answer = cast(FetchResponse, await leader.ask(ApiKey.FETCH, version, request))
        self._requests.answered(answer.session_id, answer.error_code)
        if answer.error_code != ErrorCode.NONE:
            code = error_code(answer.error_code)
            if code not in SESSION_ENDED or self._session_ended:
                raise KafkaError(code, f"the leader answers {code.name}")
            self._session_ended = True  # the next request begins another
            return
        self._session_ended = False
        self._complaint = ""
        later: list[Coroutine[Any, Any, None]] = []
        await in_turns(self._take(answer, asked, later))
        if later:
            await asyncio.gather(*later)

    async def _cut_before_first(self, ready: list[Followed]) -> None:
        """Truncate logs without epochs to their high watermark."""
        old = [each for each in ready if each.offset < each.partition.log.end_offset]
        if old:
            await asyncio.gather(*(self._cut(each, each.offset) for each in old))

    def _take(
        self,
        answer: FetchResponse,
        asked: dict[Place, tuple[Followed, int]],
        later: list[Coroutine[Any, Any, None]],
    ) -> Steps[None]:
        found = {
            (topic.topic_id, data.partition_index): data for topic in answer.responses for data in topic.partitions
        }
        # Siblings first: they limit what is appended to their partitions.
        for place in sorted(found, key=lambda place: place not in asked or asked[place][0].partition.covers is None):
            followed, offset = asked.get(place, (None, -1))
            if followed is not None and self._is_current(followed) and followed.offset == offset:
                if followed.has_unknown_sibling(found):
                    self._leave_sibling(followed)
                work = self._take_one(followed, found[place])
                if work is not None:
                    later.append(work)
            yield

    def _leave_sibling(self, followed: Followed) -> None:
        sibling, followed.sibling = followed.sibling, None
        if sibling is not None:
            self._followed.pop(sibling.partition.key, None)
            logger.warning(
                "%s: the leader of %s keeps no delayed records; ours wait until a broker leads that does",
                *(self.name, followed.partition.log.name),
            )

    def _is_current(self, followed: Followed) -> bool:
        return self._followed.get(followed.partition.key) is followed

    def _take_one(self, followed: Followed, data: PartitionData) -> Coroutine[Any, Any, None] | None:
        """Handle the answer for one partition. Returns the rest of the work if that must wait."""
        code = error_code(data.error_code)
        if code == ErrorCode.OFFSET_OUT_OF_RANGE:
            return self._find_place(followed)
        if code == ErrorCode.FENCED_LEADER_EPOCH:
            logger.info("%s: %s has a newer leader epoch than ours", self.name, followed.partition.log.name)
            self._forget(followed)
        elif code != ErrorCode.NONE:
            self._put_off(followed, "" if code in PASSING else f"the leader answers {code.name}")
        elif data.diverging_epoch.epoch >= 0:
            log = followed.partition.log
            return self._cut(followed, cut_at(log, data.diverging_epoch.epoch, data.diverging_epoch.end_offset))
        else:
            self._append(followed, data)
        return None

    def _append(self, followed: Followed, data: PartitionData) -> None:
        partition = followed.partition
        log = partition.log
        records = followed.covered_part(cast(Buffer, data.records or b""))
        try:
            if records:
                info = log.append_as_follower(records)
                self._replicas.counters.copied_in += len(records)
                if partition.throttled_as_follower and self._replicas.follower_quota is not None:
                    self._replicas.follower_quota.record(len(records))
                if info.flush_due:
                    self._replicas.flush_soon(partition)
                if info.rolled:
                    self._replicas.flush_sealed_soon(partition)
                if log.config.delivery_delay_ms:
                    self._replicas.delays.appended(partition)
                followed.offset = log.end_offset
            followed.behind = max(0, data.high_watermark - log.end_offset)
            moved = log.raise_high_watermark(min(data.high_watermark, log.end_offset))
            if data.log_start_offset > log.log_start:
                moved = log.raise_log_start(min(data.log_start_offset, log.high_watermark)) or moved
        except KafkaError as error:
            self._put_off(followed, str(error))
            return
        followed.complaint = ""
        if partition.covers is not None:
            followed.note_covered(data)
        elif moved:
            self._replicas.high_watermark_moved(partition)

    async def _cut(self, followed: Followed, offset: int) -> None:
        """Truncate the log to `offset`, on a worker thread."""
        name, end = followed.partition.log.name, followed.partition.log.end_offset
        if offset < end:
            logger.info("%s: truncating %s from %d to %d", self.name, name, end, offset)
        sibling = followed.sibling
        if sibling is not None:
            # Truncate the sibling first: until the partition is truncated too, its notes are fetched again.
            while sibling.cutting is not None:
                await asyncio.wait([sibling.cutting])
            sibling.covered = min(sibling.covered, offset)
            self._requests.start_over()
            await self._on_thread(sibling, lambda log: log.truncate_to(offset))
            if sibling.offset > offset:
                self._put_off(followed, "")
                return
        await self._on_thread(followed, lambda log: log.truncate_to(offset))

    async def _find_place(self, followed: Followed) -> None:
        """Find the offset to continue from, when the leader's log does not have ours."""
        log = followed.partition.log
        try:
            end = await self._offset_of(followed, LATEST)
            start = await self._offset_of(followed, EARLIEST)
        except KafkaError as error:
            self._put_off(followed, str(error))
            return
        if not self._is_current(followed):
            return
        logger.warning("%s: %s ends at %d, the leader's is %d to %d", self.name, log.name, log.end_offset, start, end)
        if end < log.end_offset:
            await self._cut(followed, end)
        elif start > log.end_offset:
            await self._on_thread(followed, lambda log: log.truncate_fully(start))
        else:
            followed.offset = log.end_offset

    async def _offset_of(self, followed: Followed, timestamp: int) -> int:
        partition, leader = followed.partition, self._leader()
        wish = ListOffsetsPartition(
            partition_index=partition.number, current_leader_epoch=followed.leader_epoch, timestamp=timestamp
        )
        request = ListOffsetsRequest(
            replica_id=self._replicas.node_id, topics=(ListOffsetsTopic(name=partition.topic, partitions=(wish,)),)
        )
        version = await leader.version(ApiKey.LIST_OFFSETS, newest=OFFSETS_NEWEST)
        answer = cast(ListOffsetsResponse, await leader.ask(ApiKey.LIST_OFFSETS, version, request))
        for topic in answer.topics:
            for found in topic.partitions:
                if found.error_code == ErrorCode.NONE:
                    return found.offset
                code = error_code(found.error_code)
                raise KafkaError(code, f"the leader's offsets of {partition.log.name}: {code.name}")
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"the leader's answer leaves out {partition.log.name}")

    async def _on_thread(self, followed: Followed, work: Callable[[Log], object]) -> None:
        """Change the log on a worker thread. `remove` waits for this to end."""
        if not self._is_current(followed):
            return
        log = followed.partition.log
        done: asyncio.Future[None] = self._loop.create_future()
        followed.cutting = done
        try:
            await self._loop.run_in_executor(self._workers, work, log)
            followed.offset = log.end_offset
        except KafkaError as error:
            self._put_off(followed, str(error))
        finally:
            followed.cutting = None
            if not done.done():
                done.set_result(None)

    def _put_off(self, followed: Followed, why: str) -> None:
        followed.not_before_s = self._loop.time() + self._settings().backoff_s
        if followed.partition.covers is not None:
            self._requests.start_over()
        if why and why != followed.complaint:
            followed.complaint = why
            logger.warning("%s: fetching %s again later: %s", self.name, followed.partition.log.name, why)

    def _complain(self, fault: str) -> None:
        """Log a fault once, not again while it stays the same."""
        if fault != self._complaint:
            self._complaint = fault
            logger.warning("%s: %s; trying again every %g s", self.name, fault, self._settings().backoff_s)
