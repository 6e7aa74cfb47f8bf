"""Reads partitions from given offsets on, each from its leader, one fetch to every leader always under way.

    reader = Reader(cluster, {TopicPartition("orders", 0): 0})
    for fetched in reader.poll(1.0):
        for record in fetched.records():
            print(record.offset, record.value)

The next fetch is sent before the records of the last one are handed over, so that the broker works while the caller
does. There are no fetch sessions and no group: who reads what from where is the caller's decision. When retention has
overtaken the reader it goes on from the first record there is and counts what it `missed`. When brokers cannot be
reached or do not lead any more it asks again, for as long as the caller polls; `trouble` says what it is. Not
thread-safe.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from types import TracebackType
from typing import Final, NamedTuple

from ixion.clients.cluster import Cluster
from ixion.clients.deadline import Deadline, Pauses
from ixion.clients.faults import UnknownTopicError, error_code
from ixion.clients.fetched import Fetched
from ixion.clients.lanes import Arrival, Lanes
from ixion.clients.leaders import by_topic, leader_of
from ixion.clients.metadata import Topic, TopicPartition
from ixion.clients.offsets import EARLIEST, LATEST, list_offsets
from ixion.model.errors import ErrorCode, KafkaError
from ixion.model.ids import ZERO_ID
from ixion.protocol.codec.sink import Deferred
from ixion.protocol.messages.k01_fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic, PartitionData
from ixion.protocol.registry import ApiKey
from ixion.records.batches import iter_complete_batches

LAST_BY_NAME: Final = 12  # later versions of Fetch name topics by id only
FETCH_BYTES: Final = 50 * 1024 * 1024
PARTITION_BYTES: Final = 1024 * 1024


class Asked(NamedTuple):
    """What one fetch asked for."""

    node_id: int
    offsets: dict[TopicPartition, int]
    names: dict[bytes, str]  # topics by id


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
    ) -> None:
        """`offsets` says where to begin; `max_wait_ms` and `min_bytes` how long a broker may wait for how much."""
        if not offsets:
            raise ValueError("there are no partitions to read")
        self.missed = 0  # records that retention took before they were read
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
        self._lanes: Lanes[Asked] = Lanes(cluster, request_timeout_s + max_wait_ms / 1000)
        self._resting = set(self._offsets)  # partitions that no fetch is under way for
        self._not_before_s = 0.0
        self._pauses = Pauses()
        self._turn = 0

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

    def poll(self, wait_s: float) -> list[Fetched]:
        """What has come, waiting up to `wait_s` for the first of it. KafkaError for what a retry cannot mend."""
        end_s = time.monotonic() + wait_s
        while True:
            self._ask()
            left_s = end_s - time.monotonic()
            if not self._lanes.busy:
                time.sleep(max(min(left_s, self._not_before_s - time.monotonic()), 0))
            found = [fetched for arrival in self._lanes.collect(left_s) for fetched in self._take_in(arrival)]
            if found:
                self._ask()
                return found
            if time.monotonic() >= end_s:
                return []

    def _ask(self) -> None:
        if not self._resting or time.monotonic() < self._not_before_s:
            return
        trouble: KafkaError | None = None
        led: dict[int, list[TopicPartition]] = {}
        for partition in self._in_turn():
            try:
                leader = leader_of(self._cluster, partition, Deadline(self._timeout_s))
                self._lanes.connection(leader)
            except KafkaError as error:
                trouble = passing(error)  # the other partitions need not wait for this one
            else:
                led.setdefault(leader, []).append(partition)
        for leader, partitions in led.items():
            self._fetch(leader, partitions)
        if trouble is not None:
            self._pause(trouble, stale=True)

    def _in_turn(self) -> list[TopicPartition]:
        """Each time another partition first: a broker fills its answer from the front."""
        waiting = sorted(self._resting)
        self._turn = (self._turn + 1) % len(waiting)
        return waiting[self._turn :] + waiting[: self._turn]

    def _fetch(self, leader: int, led: list[TopicPartition]) -> None:
        connection = self._lanes.connection(leader)
        topics: dict[str, Topic] = {name: self._cluster.topic(name) for name in by_topic(led)}
        has_ids = all(topic.topic_id != ZERO_ID for topic in topics.values())
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
            leader,
            {partition: self._offsets[partition] for partition in led},
            {topic.topic_id: name for name, topic in topics.items()},
        )
        self._resting -= set(led)
        self._lanes.send(leader, ApiKey.FETCH, version, request, asked)

    def _take_in(self, arrival: Arrival[Asked]) -> list[Fetched]:
        self._resting |= arrival.token.offsets.keys()
        if isinstance(arrival.outcome, KafkaError):
            self._pause(arrival.outcome, stale=True)
            return []
        answer = arrival.connection.decode(arrival.outcome, FetchResponse)
        if answer.error_code != 0:
            self._fault(error_code(answer.error_code), "a fetch")
            return []
        found = []
        for topic in answer.responses:
            name = topic.topic or arrival.token.names.get(topic.topic_id, "")
            for data in topic.partitions:
                fetched = self._read(TopicPartition(name, data.partition_index), data)
                if fetched is not None:
                    found.append(fetched)
        return found

    def _read(self, partition: TopicPartition, data: PartitionData) -> Fetched | None:
        offset = self._offsets[partition]
        if data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            self._return_to_range(partition, offset)
            return None
        if data.error_code != 0:
            self._fault(error_code(data.error_code), str(partition))
            return None
        self._pauses = Pauses()
        self.trouble = None
        if not data.records:
            return None
        assert not isinstance(data.records, Deferred)  # only who sends may leave it for later
        batches = list(iter_complete_batches(bytes(data.records)))
        end_offset = data.last_stable_offset if self._read_committed else data.high_watermark
        aborted = (data.aborted_transactions or ()) if self._read_committed else None
        fetched = Fetched(partition, offset, batches, end_offset, aborted)
        self._offsets[partition] = fetched.next_offset
        return fetched

    def _return_to_range(self, partition: TopicPartition, offset: int) -> None:
        start = list_offsets(self._cluster, [partition], EARLIEST)[partition]
        if offset >= start:
            end = list_offsets(self._cluster, [partition], LATEST)[partition]
            text = f"{partition} has offsets {start} to {end - 1}, not {offset}"
            raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, text)
        self.missed += start - offset
        self._offsets[partition] = start

    def _fault(self, code: ErrorCode, about: str) -> None:
        error = KafkaError(code, f"{about}: {code.explanation}")
        if not code.retriable:
            raise error
        self._pause(error, stale=code.stale_metadata)

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
