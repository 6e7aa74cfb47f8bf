"""A consumer: reads topics as a member of a group, or partitions of its choice.

    with Consumer("127.0.0.1:9092", group="billing", topics=["orders"]) as consumer:
        for record in consumer:
            print(record.topic, record.partition, record.offset, record.key, record.value)

`poll` follows the numbered steps of the consumer's document; each step is named where it is taken. Records that were
fetched are handed out first, the half-read fetch among them; the next fetches are under way before poll returns. So at
most two fetches of a leader are here at a time, `fetch_max_bytes` each. A consumer belongs to one thread; only `wakeup`
may be called from others. In a group a second thread sends heartbeats.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any, Final, Protocol, TypeVar

from ixion.clients.cluster import Cluster
from ixion.clients.consumer.batch import ColumnBatch
from ixion.clients.consumer.buffer import Buffer
from ixion.clients.consumer.errors import (
    CommitFailedError,
    ConsumerClosedError,
    ConsumerUseError,
    LogTruncationError,
    WakeupError,
)
from ixion.clients.consumer.group import GroupPart, RebalanceListener
from ixion.clients.consumer.guard import SingleThread
from ixion.clients.consumer.positions import find_positions
from ixion.clients.consumer.record import ConsumerRecord
from ixion.clients.consumer.settings import read_settings
from ixion.clients.consumer.subscription import POLICIES, Subscription
from ixion.clients.group_offsets import commit_offsets, fetch_offsets
from ixion.clients.metadata import TopicPartition
from ixion.clients.offsets import EARLIEST, LATEST, list_offsets
from ixion.clients.reader import Reader
from ixion.model.errors import KafkaError

T = TypeVar("T")

SLICE_S: Final = 0.1  # the longest wait between two looks at wakeup and the group
FOREVER_S: Final = 1e9


class Interceptor(Protocol):
    """Sees records before the caller does, and what was committed."""

    def on_consume(self, records: list[ConsumerRecord]) -> list[ConsumerRecord]: ...

    def on_commit(self, offsets: Mapping[TopicPartition, int]) -> None: ...


class Consumer:
    def __init__(
        self,
        bootstrap: str,
        *,
        group: str | None = None,
        topics: Sequence[str] = (),
        listener: RebalanceListener | None = None,
        interceptors: Sequence[Interceptor] = (),
        **settings: Any,
    ) -> None:
        """`settings` are Kafka's, with underscores (`auto_offset_reset="earliest"`); see `ConsumerSettings`."""
        self._settings = read_settings(settings)
        self._bootstrap = bootstrap
        self._group = group
        self._interceptors = tuple(interceptors)
        self._guard = SingleThread()
        self._woken = threading.Event()
        self._closed = False
        self._subscription = Subscription()
        self._buffer = Buffer(self._subscription)
        self._policy = POLICIES.get(self._settings.auto_offset_reset)
        self._read_committed = self._settings.isolation_level == "read_committed"
        self._lost_offsets: set[TopicPartition] = set()  # whose position does not exist any more
        self._cluster = Cluster(
            bootstrap, client_id=self._settings.client_id, timeout_s=self._settings.default_api_timeout_ms / 1000
        )
        self._reader: Reader | None = None
        self._part: GroupPart | None = None
        self._commit_s = time.monotonic() + self._settings.auto_commit_interval_ms / 1000
        self._committed: dict[TopicPartition, int] = {}
        if topics:
            self.subscribe(topics, listener)

    def __enter__(self) -> Consumer:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    # What to read

    def subscribe(self, topics: Sequence[str], listener: RebalanceListener | None = None) -> None:
        """Read these topics, with the other members of the group; takes the place of what was subscribed before."""
        with self._entered():
            if self._group is None:
                raise ConsumerUseError("topics are shared out in a group: name one (group=…), or assign() partitions")
            if isinstance(topics, str) or not topics:
                raise ValueError(f"topics is a list of names, not {topics!r}")
            if self._part is None and self._subscription.partitions:
                raise ConsumerUseError("this consumer reads partitions of its choice; it cannot subscribe as well")
            heard = listener or RebalanceListener()
            if self._part is None:
                self._part = GroupPart(self._bootstrap, self._group, topics, heard, self._settings)
            else:
                self._part.subscribe(topics, heard)

    def assign(self, partitions: Iterable[TopicPartition]) -> None:
        """Read these partitions, whatever others read. Those that stay keep their positions."""
        with self._entered():
            if self._part is not None:
                raise ConsumerUseError("this consumer has subscribed to topics; the group assigns their partitions")
            self._take_over([TopicPartition(*each) for each in partitions])

    def assignment(self) -> list[TopicPartition]:
        with self._entered():
            return self._subscription.partitions

    # Records

    def poll(self, timeout_s: float = 0.0, max_records: int | None = None) -> list[ConsumerRecord]:
        """Records that are here, or come within `timeout_s`. It may take longer while the group is balanced anew."""
        most = self._settings.max_poll_records if max_records is None else max_records
        with self._entered():  # steps 2 and 17
            return self._intercept(self._wait_for(timeout_s, lambda: self._buffer.take(most)))  # step 15

    def __iter__(self) -> Iterator[ConsumerRecord]:
        """Records one by one, for ever; the position moves with each."""
        while True:
            yield from self.poll(FOREVER_S, 1)
            for _ in range(1, self._settings.max_poll_records):  # what is here already, without all of poll's steps
                if self._woken.is_set():
                    break
                with self._entered():
                    found = self._intercept(self._buffer.take(1))
                if not found:
                    break
                yield found[0]

    def batches(self, timeout_s: float = FOREVER_S) -> Iterator[ColumnBatch]:
        """Records as columns, batch by batch, until none comes for `timeout_s`; the position moves with each."""
        while True:
            with self._entered():
                found = self._wait_for(timeout_s, self._next_columns)
            if not found:
                return
            yield from found

    def wakeup(self) -> None:
        """End the poll that is under way, or the next one, with WakeupError. For any thread."""
        self._woken.set()

    # Positions

    def position(self, partition: TopicPartition) -> int:
        """The offset of the next record to be handed out."""
        with self._entered():
            if self._subscription.position(partition) is None:
                self._find_positions()
            found = self._subscription.position(partition)
            assert found is not None
            return found

    def seek(self, partition: TopicPartition, offset: int) -> None:
        with self._entered():
            if offset < 0:
                raise ValueError(f"an offset is not negative, as {offset} is")
            self._subscription.place(partition, offset)
            self._buffer.drop(partition)
            self._read_from(partition, offset)

    def seek_to_beginning(self, *partitions: TopicPartition) -> None:
        self._reset(partitions, EARLIEST)

    def seek_to_end(self, *partitions: TopicPartition) -> None:
        self._reset(partitions, LATEST)

    def pause(self, *partitions: TopicPartition) -> None:
        """Hand out and fetch nothing of these until they are resumed."""
        with self._entered():
            for partition in partitions:
                self._subscription.pause(partition)
                if self._reader is not None:
                    self._reader.drop(partition)

    def resume(self, *partitions: TopicPartition) -> None:
        with self._entered():
            for partition in partitions:
                if self._subscription.is_paused(partition):
                    self._subscription.resume(partition)
                    position = self._subscription.position(partition)
                    here = self._buffer.next_offset(partition)
                    if position is not None:
                        self._read_from(partition, position if here is None else here)

    def paused(self) -> list[TopicPartition]:
        with self._entered():
            return [each for each in self._subscription.partitions if self._subscription.is_paused(each)]

    # Offsets of brokers and of the group

    def beginning_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        with self._entered():
            return list_offsets(self._cluster, partitions, EARLIEST)

    def end_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        with self._entered():
            return list_offsets(self._cluster, partitions, LATEST, read_committed=self._read_committed)

    def offsets_for_times(self, times: Mapping[TopicPartition, int]) -> dict[TopicPartition, int | None]:
        """The first offset of that time (milliseconds) or later; None where no record is that young."""
        with self._entered():
            found: dict[TopicPartition, int | None] = {}
            for time_ms in sorted(set(times.values())):
                places = [place for place, each in times.items() if each == time_ms]
                offsets = list_offsets(self._cluster, places, time_ms, read_committed=self._read_committed)
                found.update({place: offset if offset >= 0 else None for place, offset in offsets.items()})
            return found

    def commit(self, offsets: Mapping[TopicPartition, int] | None = None) -> None:
        """Commit the positions, or these offsets, and wait until it is done. CommitFailedError if the group has gone
        on without us."""
        with self._entered():
            if self._group is None:
                raise ConsumerUseError("offsets are committed for a group: name one (group=…)")
            self._commit(self._subscription.positions() if offsets is None else dict(offsets))

    def committed(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int | None]:
        with self._entered():
            if self._group is None:
                raise ConsumerUseError("offsets are committed for a group: name one (group=…)")
            stored = fetch_offsets(self._cluster, self._group)
            return {place: stored.get(place) for place in partitions}

    def close(self) -> None:
        """Commit, if that is automatic, leave the group and hang up. A second call does nothing."""
        with self._guard:
            if self._closed:
                return
            try:
                self._commit_automatically()
            except KafkaError:
                pass  # the records since the last commit are read again by another member
            finally:
                self._closed = True
                if self._part is not None:
                    self._part.close()
                if self._reader is not None:
                    self._reader.close()
                self._cluster.close()

    # Within

    def _entered(self) -> SingleThread:
        if self._closed:
            raise ConsumerClosedError
        return self._guard

    def _wait_for(self, timeout_s: float, take: Callable[[], list[T]]) -> list[T]:
        if timeout_s < 0:  # step 3
            raise ValueError(f"a timeout is not negative, as {timeout_s:g} is")
        if self._part is None and not self._subscription.partitions:
            raise ConsumerUseError("there is nothing to read: subscribe() to topics, or assign() partitions")
        end_s = time.monotonic() + timeout_s
        while True:
            self._check_wakeup()  # step 4
            self._update_assignment()  # step 5
            found = take()  # steps 6 and 7: what is here already
            if not found:
                self._fetch(max(min(end_s - time.monotonic(), SLICE_S), 0.0))  # steps 8 to 11
                if self._part is not None and self._part.must_join:
                    continue  # step 12
                found = take()  # step 13
            if found or time.monotonic() >= end_s:  # step 16
                return found  # step 14: the reader has sent the next fetches

    def _check_wakeup(self) -> None:
        if self._woken.is_set():
            self._woken.clear()
            raise WakeupError

    def _update_assignment(self) -> None:
        if self._part is not None:
            self._part.polled()
            if self._part.must_join:
                self._rebalance(self._part)
        if self._settings.enable_auto_commit and time.monotonic() >= self._commit_s:
            self._commit_automatically()
        if self._subscription.unplaced():
            self._find_positions()

    def _rebalance(self, part: GroupPart) -> None:
        held = self._subscription.partitions
        if held and part.has_lost:
            self._take_over([])
            part.listener.on_lost(held)
        elif not part.is_cooperative:
            self._give_up(part, held)
        held = self._subscription.partitions
        places = part.join(held)
        revoked = [place for place in held if place not in places]
        if revoked:
            self._give_up(part, revoked)
            part.join_again()
        self._take_over(places)
        part.listener.on_assigned([place for place in places if place not in held])

    def _give_up(self, part: GroupPart, places: list[TopicPartition]) -> None:
        if places:
            self._commit_automatically()
            part.listener.on_revoked(places)
            self._take_over([place for place in self._subscription.partitions if place not in places])

    def _take_over(self, places: list[TopicPartition]) -> None:
        for place in set(self._subscription.partitions) - set(places):
            self._buffer.drop(place)
            self._committed.pop(place, None)
            if self._reader is not None:
                self._reader.drop(place)
        self._subscription.assign(places)

    def _find_positions(self) -> None:
        found = find_positions(
            self._cluster,
            self._group,
            self._subscription.unplaced(),
            self._policy,
            out_of_range=self._lost_offsets,
            read_committed=self._read_committed,
        )
        for place, offset in found.items():
            self._lost_offsets.discard(place)
            self._subscription.place(place, offset)
            self._read_from(place, offset)

    def _read_from(self, place: TopicPartition, offset: int) -> None:
        if self._subscription.is_paused(place):
            return
        if self._reader is not None:
            self._reader.add(place, offset)
            return
        settings = self._settings
        self._reader = Reader(
            self._cluster,
            {place: offset},
            read_committed=self._read_committed,
            max_wait_ms=settings.fetch_max_wait_ms,
            min_bytes=settings.fetch_min_bytes,
            max_bytes=settings.fetch_max_bytes,
            partition_bytes=settings.max_partition_fetch_bytes,
            request_timeout_s=settings.request_timeout_ms / 1000,
            strict=True,
        )

    def _fetch(self, wait_s: float) -> None:
        reader = self._reader
        if reader is None or not reader.offsets:
            self._woken.wait(wait_s)
        else:
            for fetched in reader.poll(wait_s):
                self._buffer.add(fetched)
        if reader is not None:
            self._mend_positions(reader)

    def _mend_positions(self, reader: Reader) -> None:
        """Of partitions that cannot be read on where we are, once what is here of them has been handed out."""
        for place in [each for each in reader.out_of_range if self._buffer.next_offset(each) is None]:
            reader.out_of_range.discard(place)
            if place in self._subscription:
                self._lost_offsets.add(place)
                self._subscription.ask_reset(place, None)
        for place, offset in list(reader.truncated.items()):
            if place in self._subscription and self._buffer.next_offset(place) is None:
                if self._policy is None:
                    raise LogTruncationError(str(place), self._subscription.positions()[place], offset)
                self._subscription.place(place, offset)
                self._read_from(place, offset)

    def _next_columns(self) -> list[ColumnBatch]:
        found = self._buffer.take_columns()
        return [] if found is None else [ColumnBatch(*found)]

    def _reset(self, partitions: Sequence[TopicPartition], to: int) -> None:
        """All that are assigned, if none is named."""
        with self._entered():
            for partition in partitions or self._subscription.partitions:
                self._subscription.ask_reset(partition, to)
                self._buffer.drop(partition)
                if self._reader is not None:
                    self._reader.drop(partition)

    def _commit(self, offsets: dict[TopicPartition, int]) -> None:
        if not offsets or self._group is None:
            return
        if self._part is not None:
            self._part.commit(offsets)
        else:
            commit_offsets(self._cluster, self._group, offsets)
        self._committed.update(offsets)
        for interceptor in self._interceptors:
            interceptor.on_commit(offsets)

    def _commit_automatically(self) -> None:
        if not self._settings.enable_auto_commit or self._group is None:
            return
        self._commit_s = time.monotonic() + self._settings.auto_commit_interval_ms / 1000
        positions = self._subscription.positions()
        try:
            self._commit({place: at for place, at in positions.items() if self._committed.get(place) != at})
        except KafkaError as error:
            if not isinstance(error, CommitFailedError) and not error.code.retriable:
                raise  # the others pass by themselves; what is not committed now is committed next time

    def _intercept(self, records: list[ConsumerRecord]) -> list[ConsumerRecord]:
        if records:
            for interceptor in self._interceptors:
                records = interceptor.on_consume(records)
        return records
