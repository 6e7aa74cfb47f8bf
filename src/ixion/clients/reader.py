"""Reads partitions from given offsets on, each from its leader, one fetch to every leader always under way.

    reader = Reader(cluster, {TopicPartition("orders", 0): 0})
    for fetched in reader.poll(1.0):
        for record in fetched.records():
            print(record.offset, record.value)

The next fetch is sent before the records of the last one are handed over, so that the broker works while the caller
does. There are no fetch sessions and no group: who reads what from where is the caller's decision. When retention has
overtaken the reader it goes on from the first record there is and counts what it `missed`, unless it is `strict`. When
brokers cannot be reached or do not lead any more it asks again, for as long as the caller polls; `trouble` says what it
is. Not thread-safe.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping
from types import TracebackType
from typing import Final, NamedTuple

from ixion.clients.cluster import Cluster
from ixion.clients.deadline import Pauses
from ixion.clients.epochs import Epochs, epoch_in
from ixion.clients.faults import UnknownTopicError, error_code
from ixion.clients.fetched import Fetched
from ixion.clients.lanes import Arrival, Lanes
from ixion.clients.leaders import leader_in
from ixion.clients.metadata import Topic, TopicPartition, by_topic
from ixion.clients.offsets import EARLIEST, LATEST, OFFSETS_FROM
from ixion.model.errors import ErrorCode, KafkaError
from ixion.model.ids import ZERO_ID
from ixion.protocol.codec.sink import Deferred
from ixion.protocol.messages.k01_fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic, PartitionData
from ixion.protocol.messages.k02_list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from ixion.protocol.messages.k23_offset_for_leader_epoch import OffsetForLeaderEpochResponse
from ixion.protocol.registry import ApiKey
from ixion.records.batches import iter_complete_batches

EPOCHS_FROM: Final = 3  # the first version of OffsetForLeaderEpoch that consumers may ask
LAST_BY_NAME: Final = 12  # later versions of Fetch name topics by id only
FETCH_BYTES: Final = 50 * 1024 * 1024
PARTITION_BYTES: Final = 1024 * 1024


class Asked(NamedTuple):
    """What one fetch asked for."""

    offsets: dict[TopicPartition, int]
    names: dict[bytes, str]  # topics by id


class Astray(NamedTuple):
    """A partition whose offset the broker does not have, while its first and then its last offset are asked for."""

    partition: TopicPartition
    offset: int
    start: int | None


class Doubtful(NamedTuple):
    """A partition with a new leader, while we ask whether its log still has what we have read."""

    partition: TopicPartition
    offset: int
    leader_epoch: int


Token = Asked | Astray | Doubtful


class Reader:
    def __init__(
        self,
        cluster: Cluster,
        offsets: Mapping[TopicPartition, int],
        *,
        read_committed: bool = False,
        max_wait_ms: int = 500,
        min_bytes: int = 1,
        max_bytes: int = FETCH_BYTES,
        partition_bytes: int = PARTITION_BYTES,
        request_timeout_s: float = 30.0,
        strict: bool = False,
    ) -> None:
        """`offsets` says where to begin; `max_wait_ms` and `min_bytes` how long a broker may wait for how much. A
        strict reader drops a partition whose offset does not exist, and adds it to `out_of_range`, or whose records a
        new leader has lost, and adds it to `truncated`; another goes on as best it can."""
        if not offsets:
            raise ValueError("there are no partitions to read")
        self.missed = 0  # records that retention took before they were read
        self.out_of_range: set[TopicPartition] = set()  # dropped, because the offset does not exist
        self.truncated: dict[TopicPartition, int] = {}  # dropped, because the leader's log parts from ours there
        self.trouble: KafkaError | None = None  # why nothing comes at the moment
        self.trouble_since_s = 0.0  # on the monotonic clock
        self._cluster = cluster
        self._offsets = dict(offsets)
        self._read_committed = read_committed
        self._max_wait_ms = max_wait_ms
        self._min_bytes = min_bytes
        self._max_bytes = max_bytes
        self._partition_bytes = partition_bytes
        self._timeout_s = request_timeout_s
        self._lanes: Lanes[Token] = Lanes(cluster, request_timeout_s + max_wait_ms / 1000)
        self._resting = set(self._offsets)  # partitions that no request is under way for
        self._arrived: deque[Arrival[Token]] = deque()  # and not looked at yet
        self._found: list[Fetched] = []  # and not handed over yet; an error may come first
        self._not_before_s = 0.0
        self._pauses = Pauses()
        self._turn = 0
        self._strict = strict
        self._epochs = Epochs()

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        self._lanes.close()

    @property
    def offsets(self) -> dict[TopicPartition, int]:
        """Where each partition is read on, beyond what has been handed over."""
        return dict(self._offsets)

    def add(self, partition: TopicPartition, offset: int) -> None:
        """Read one partition more, from that offset on."""
        self._offsets[partition] = offset
        self._resting.add(partition)
        self._epochs.forget(partition)
        self.truncated.pop(partition, None)
        self.out_of_range.discard(partition)

    def drop(self, partition: TopicPartition) -> None:
        """Read that partition no longer; what is under way for it is thrown away."""
        self._offsets.pop(partition, None)
        self._resting.discard(partition)
        self._epochs.forget(partition)
        self._found = [fetched for fetched in self._found if fetched.partition != partition]

    def poll(self, wait_s: float) -> list[Fetched]:
        """What has come, waiting up to `wait_s` for the first of it. KafkaError for what a retry cannot mend."""
        end_s = time.monotonic() + wait_s
        while True:
            self._ask()
            if not self._arrived and not self._found:
                if not self._lanes.busy:
                    time.sleep(max(min(end_s, self._not_before_s) - time.monotonic(), 0))
                self._arrived += self._lanes.collect(end_s - time.monotonic())
            while self._arrived:
                self._take_in(self._arrived.popleft())
            if self._found:
                self._ask()
                found, self._found = self._found, []
                return found
            if time.monotonic() >= end_s:
                return []

    def _ask(self) -> None:
        if not self._resting or time.monotonic() < self._not_before_s:
            return
        trouble: KafkaError | None = None
        led: dict[int, list[TopicPartition]] = {}
        topics: dict[str, Topic] = {}
        for partition in self._in_turn():
            try:
                topic = self._lanes.topic(partition.topic)
                if topic is None:
                    continue
                leader = leader_in(topic, partition)
                if self._lanes.ready(leader) is None:
                    continue
            except KafkaError as error:
                trouble = passing(error)  # the other partitions need not wait for this one
            else:
                topics[topic.name] = topic
                if self._epochs.must_check(partition, epoch_in(topic, partition)):
                    self._check(leader, partition, epoch_in(topic, partition))
                    continue
                led.setdefault(leader, []).append(partition)
        for leader, partitions in led.items():
            if self._lanes.ready(leader) is not None:  # a check may have been sent first
                self._fetch(leader, partitions, topics)
        if trouble is not None:
            self._pause(trouble, stale=True)

    def _in_turn(self) -> list[TopicPartition]:
        """Each time another partition first: a broker fills its answer from the front."""
        waiting = sorted(self._resting)
        self._turn = (self._turn + 1) % len(waiting)
        return waiting[self._turn :] + waiting[: self._turn]

    def _fetch(self, leader: int, led: list[TopicPartition], known: Mapping[str, Topic]) -> None:
        topics = {place.topic: known[place.topic] for place in led}
        has_ids = all(topic.topic_id != ZERO_ID for topic in topics.values())
        connection = self._lanes.ready(leader)
        assert connection is not None, "the lane was ready when the partitions were chosen"
        version = connection.version(ApiKey.FETCH, newest=ApiKey.FETCH.newest if has_ids else LAST_BY_NAME)
        request = FetchRequest(
            max_wait_ms=self._max_wait_ms,
            min_bytes=self._min_bytes,
            max_bytes=self._max_bytes,
            isolation_level=int(self._read_committed),
            topics=tuple(
                FetchTopic(
                    topic=name,
                    topic_id=topics[name].topic_id,
                    partitions=tuple(
                        FetchPartition(
                            partition=number,
                            current_leader_epoch=epoch_in(topics[name], TopicPartition(name, number)),
                            fetch_offset=self._offsets[TopicPartition(name, number)],
                            partition_max_bytes=self._partition_bytes,
                        )
                        for number in numbers
                    ),
                )
                for name, numbers in by_topic(led).items()
            ),
        )
        asked = Asked(
            {partition: self._offsets[partition] for partition in led},
            {topic.topic_id: name for name, topic in topics.items()},
        )
        self._resting -= set(led)
        self._lanes.send(leader, ApiKey.FETCH, version, request, FetchResponse, asked)

    def _take_in(self, arrival: Arrival[Token]) -> None:
        token, outcome = arrival
        asked = token.offsets.keys() if isinstance(token, Asked) else {token.partition}
        self._resting |= asked & self._offsets.keys()
        if isinstance(outcome, KafkaError):
            self._pause(outcome, stale=True)
        elif isinstance(token, Astray):
            assert isinstance(outcome, ListOffsetsResponse)
            if self._offsets.get(token.partition) == token.offset:
                self._return_to_range(token, outcome)
        elif isinstance(token, Doubtful):
            assert isinstance(outcome, OffsetForLeaderEpochResponse)
            if self._offsets.get(token.partition) == token.offset:
                self._compare(token, outcome)
        else:
            assert isinstance(outcome, FetchResponse)
            self._take_fetch(token, outcome)

    def _take_fetch(self, asked: Asked, answer: FetchResponse) -> None:
        if answer.error_code != 0:
            self._fault(KafkaError(error_code(answer.error_code)), "a fetch")
        lasting: KafkaError | None = None
        for topic in answer.responses:
            name = topic.topic or asked.names.get(topic.topic_id, "")
            for data in topic.partitions:
                place = TopicPartition(name, data.partition_index)
                try:
                    # A partition that was dropped meanwhile, or begun anew elsewhere, has no use for the answer.
                    if place in asked.offsets and self._offsets.get(place) == asked.offsets[place]:
                        self._read(place, data)
                except KafkaError as error:
                    lasting = error  # after the other partitions of the answer
        if lasting is not None:
            raise lasting

    def _read(self, partition: TopicPartition, data: PartitionData) -> None:
        offset = self._offsets[partition]
        if data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE and self._strict:
            self.out_of_range.add(partition)
            self.drop(partition)
            return
        if data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            self._ask_range(Astray(partition, offset, None))
            return
        if data.error_code != 0:
            self._fault(KafkaError(error_code(data.error_code)), str(partition))
            return
        assert not isinstance(data.records, Deferred)  # only a broker leaves records for later
        try:
            batches = list(iter_complete_batches(data.records or b""))
        except KafkaError as error:
            self._fault(error, str(partition))
            return
        self._pauses = Pauses()
        self.trouble = None
        if not batches:
            return
        end_offset = data.last_stable_offset if self._read_committed else data.high_watermark
        aborted = (data.aborted_transactions or ()) if self._read_committed else None
        fetched = Fetched(partition, offset, batches, end_offset, aborted)
        self._offsets[partition] = fetched.next_offset
        self._epochs.read(partition, batches[-1].leader_epoch)
        self._found.append(fetched)

    def _check(self, leader: int, partition: TopicPartition, leader_epoch: int) -> None:
        connection = self._lanes.ready(leader)
        if connection is None:
            return  # a check of another partition is under way; this one follows
        try:
            version = connection.version(ApiKey.OFFSET_FOR_LEADER_EPOCH, oldest=EPOCHS_FROM)
        except KafkaError:
            self._epochs.confirm(partition, leader_epoch)  # a broker that cannot tell
            return
        doubtful = Doubtful(partition, self._offsets[partition], leader_epoch)
        request = self._epochs.request(partition, leader_epoch)
        self._resting.discard(partition)
        api = ApiKey.OFFSET_FOR_LEADER_EPOCH
        self._lanes.send(leader, api, version, request, OffsetForLeaderEpochResponse, doubtful)

    def _compare(self, doubtful: Doubtful, answer: OffsetForLeaderEpochResponse) -> None:
        place, offset, leader_epoch = doubtful
        for found in (part for topic in answer.topics for part in topic.partitions):
            if found.error_code != 0:
                self._fault(KafkaError(error_code(found.error_code)), str(place))
                return
            if 0 <= found.end_offset < offset:
                if self._strict:
                    self.drop(place)
                    self.truncated[place] = found.end_offset
                    return
                self._offsets[place] = found.end_offset
        self._epochs.confirm(place, leader_epoch)

    def _ask_range(self, astray: Astray) -> None:
        """Ask the leader for the first offset of a partition, and then for its last."""
        place = astray.partition
        topic = self._lanes.topic(place.topic)
        leader = -1 if topic is None else leader_in(topic, place)
        connection = None if topic is None else self._lanes.ready(leader)
        if connection is None:
            return  # fetched and found out of range once more
        time_ms = EARLIEST if astray.start is None else LATEST
        wanted = ListOffsetsPartition(partition_index=place.partition, timestamp=time_ms)
        request = ListOffsetsRequest(
            replica_id=-1,
            isolation_level=int(self._read_committed),
            topics=(ListOffsetsTopic(name=place.topic, partitions=(wanted,)),),
        )
        version = connection.version(ApiKey.LIST_OFFSETS, oldest=OFFSETS_FROM)
        self._resting.discard(place)
        self._lanes.send(leader, ApiKey.LIST_OFFSETS, version, request, ListOffsetsResponse, astray)

    def _return_to_range(self, astray: Astray, answer: ListOffsetsResponse) -> None:
        place, offset, start = astray
        for found in (part for topic in answer.topics for part in topic.partitions):
            if found.error_code != 0:
                self._fault(KafkaError(error_code(found.error_code)), str(place))
            elif start is not None:
                text = f"{place} has offsets {start} to {found.offset - 1}, not {offset}"
                raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, text)
            elif found.offset > offset:
                self.missed += found.offset - offset
                self._offsets[place] = found.offset
            else:
                self._ask_range(Astray(place, offset, found.offset))
            return

    def _fault(self, error: KafkaError, about: str) -> None:
        named = KafkaError(error.code, f"{about}: {error.message}")
        if not error.code.retriable:
            raise named
        self._pause(named, stale=error.code.stale_metadata)

    def _pause(self, error: KafkaError, *, stale: bool) -> None:
        if stale:
            self._cluster.forget()
        now_s = time.monotonic()
        if self.trouble is None:
            self.trouble_since_s = now_s
        self.trouble = error
        self._not_before_s = now_s + self._pauses.next_s()


def passing(error: KafkaError) -> KafkaError:
    """The same error, if it may pass by itself; raised if not."""
    may_pass = error.code.retriable or error.code == ErrorCode.BROKER_NOT_AVAILABLE
    if isinstance(error, UnknownTopicError) or not may_pass:
        raise error
    return error
