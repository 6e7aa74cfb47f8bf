"""Reads partitions from given offsets, fetch by fetch, without a group.

    with Reader("127.0.0.1:9092", {TopicPartition("orders", 0): 0}) as reader:
        for fetched in reader.poll(1.0):
            for record in fetched.records():
                print(record.offset, record.value)

It is another face of the consumer's core: `poll` returns whole fetches, so that a caller can take records or columns of
them, up to an end of its choice. The next fetches are sent before it returns. When retention has overtaken the reader,
it continues from the log start and counts the `missed` records. When a new leader has lost records that were read, it
goes back to the offset where the logs diverge. When brokers cannot be reached or no longer lead, it retries for as long
as the caller polls; `trouble` says why. Not thread-safe.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from types import TracebackType
from typing import Final, TypedDict

from ixion.clients.address import parse_bootstrap
from ixion.clients.clock import wall_clock_ms
from ixion.clients.core.connection import SOFTWARE
from ixion.clients.core.consumer.lookups import OffsetLookup
from ixion.clients.core.consumer.machine import ConsumerMachine
from ixion.clients.core.consumer.settings import ConsumerSettings
from ixion.clients.core.consumer.subscription import EARLIEST, LATEST
from ixion.clients.core.security import PLAINTEXT, Security
from ixion.clients.engine import Engine, random
from ixion.clients.fetched import Fetched
from ixion.clients.metadata import TopicPartition
from ixion.language.model.errors import ErrorCode, KafkaError

FETCH_BYTES: Final = 50 * 1024 * 1024
PARTITION_BYTES: Final = 1024 * 1024
TIMEOUT_S: Final = 30.0
METADATA_S: Final = 300.0
CONNECT_S: Final = 10.0  # for one address; then the next one is tried


class ReaderOptions(TypedDict, total=False):
    """How a cluster is reached."""

    client_id: str
    security: Security
    request_timeout_s: float
    metadata_max_age_s: float


class Reader:
    def __init__(
        self,
        bootstrap: str,
        offsets: Mapping[TopicPartition, int],
        *,
        client_id: str = SOFTWARE,
        security: Security = PLAINTEXT,
        read_committed: bool = False,
        max_wait_ms: int = 500,
        min_bytes: int = 1,
        max_bytes: int = FETCH_BYTES,
        partition_bytes: int = PARTITION_BYTES,
        request_timeout_s: float = TIMEOUT_S,
        metadata_max_age_s: float = METADATA_S,
    ) -> None:
        """`offsets` says where to begin; a broker may wait up to `max_wait_ms` for `min_bytes`."""
        if not offsets:
            raise ValueError("there are no partitions to read")
        self.missed = 0  # records that retention deleted before they were read
        self.trouble: KafkaError | None = None  # why no records arrive at the moment
        self.trouble_since_s = 0.0  # on the monotonic clock
        settings = ConsumerSettings(
            client_id=client_id,
            auto_offset_reset="none",
            isolation_level="read_committed" if read_committed else "read_uncommitted",
            fetch_min_bytes=min_bytes,
            fetch_max_bytes=max_bytes,
            fetch_max_wait_ms=max_wait_ms,
            max_partition_fetch_bytes=partition_bytes,
            allow_auto_create_topics=False,
            request_timeout_ms=max(int(request_timeout_s * 1000), 1),
            metadata_max_age_ms=int(metadata_max_age_s * 1000),
            socket_connection_setup_timeout_ms=max(int(min(request_timeout_s, CONNECT_S) * 1000), 1),
        )
        self._offsets = dict(offsets)  # after the last fetch that was returned
        self._lookups: dict[
            TopicPartition, OffsetLookup
        ] = {}  # of the first offset of partitions that are out of range
        self._machine = ConsumerMachine(
            parse_bootstrap(bootstrap),
            None,
            settings,
            random,
            time.monotonic(),
            security=security,
            wall_ms=wall_clock_ms,
        )
        self._engine = Engine(self._machine, "ixion-reader", do_nothing, stands_in=False)
        self._assign(self._offsets)

    def __enter__(self) -> Reader:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        with self._engine.lock:
            self._machine.close(time.monotonic())
        self._engine.stop()

    @property
    def offsets(self) -> dict[TopicPartition, int]:
        """The offset after the last fetch that was returned, by partition."""
        return dict(self._offsets)

    def partitions_of(self, topic: str) -> list[TopicPartition]:
        """The partitions with a leader, from metadata that is at most `metadata_max_age_s` old. Sends no request."""
        with self._engine.lock:
            known = self._machine.client.cluster.topics.get(topic)
        return (
            []
            if known is None
            else [TopicPartition(topic, each.number) for each in known.partitions if each.leader >= 0]
        )

    def add(self, partition: TopicPartition, offset: int) -> None:
        """Read one partition more, from that offset on."""
        self._offsets[partition] = offset
        self._assign([partition])

    def drop(self, partition: TopicPartition) -> None:
        """Stop reading that partition; fetches in flight are discarded."""
        self._offsets.pop(partition, None)
        self._lookups.pop(partition, None)
        self._assign(())

    def poll(self, wait_s: float) -> list[Fetched]:
        """Fetches that have arrived, waiting up to `wait_s` for the first. KafkaError if it is not retriable."""
        end_s = time.monotonic() + wait_s
        engine, machine = self._engine, self._machine
        with engine.lock:
            while True:
                engine.pump(time.monotonic())
                self._return_to_range()
                found = machine.buffer.take_fetches()
                if found:
                    for fetched in found:
                        self._offsets[fetched.partition] = fetched.next_offset
                    engine.pump(time.monotonic())  # the next fetches
                elif machine.client.denied is not None:
                    raise machine.client.denied
                elif machine.faults:
                    raise machine.faults.popleft()
                elif engine.wait(self._has_news, end_s):
                    continue
                self._look_for_trouble()
                return found

    def _has_news(self) -> bool:
        machine = self._machine
        if machine.buffer.has_next or machine.faults or machine.client.denied is not None:
            return True
        return any(self._is_astray(place) for place in self._offsets)

    def _is_astray(self, place: TopicPartition) -> bool:
        """Whether the position of the partition no longer exists and can be corrected now."""
        state = self._machine.subscription.assigned[place]
        if state.truncated_to is not None and not state.fetches:
            return True
        lookup = self._lookups.get(place)
        return state.position is None and (lookup is None or lookup.is_done)

    def _return_to_range(self) -> None:
        machine = self._machine
        for place in [place for place in self._offsets if self._is_astray(place)]:
            offset = self._offsets[place]
            truncated_to = machine.subscription.assigned[place].truncated_to
            lookup = self._lookups.pop(place, None)
            if truncated_to is not None:
                self._offsets[place] = truncated_to
                machine.seek(place, truncated_to)
            elif lookup is None:
                self._lookups[place] = machine.list_offsets({place: EARLIEST})
            elif lookup.fault is not None:
                raise lookup.fault
            elif lookup.times[place] == LATEST:
                text = f"{place} ends at offset {lookup.found[place][0]}, before {offset}"
                raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, text)
            elif lookup.found[place][0] > offset:
                self.missed += lookup.found[place][0] - offset
                self._offsets[place] = lookup.found[place][0]
                machine.seek(place, self._offsets[place])
            else:
                self._lookups[place] = machine.list_offsets({place: LATEST})

    def _assign(self, begun: Iterable[TopicPartition]) -> None:
        """Assign the partitions of `_offsets`; those of `begun` start at their offsets."""
        with self._engine.lock:
            self._machine.assign(self._offsets)
            for place in begun:
                self._machine.seek(place, self._offsets[place])

    def _look_for_trouble(self) -> None:
        trouble = self._machine.trouble
        if trouble is not None and self.trouble is None:
            self.trouble_since_s = time.monotonic()
        self.trouble = trouble


def do_nothing() -> None:
    """No callbacks."""
