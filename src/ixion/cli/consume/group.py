"""`ixion consume --group`: read assigned partitions, and commit printed records.

Offsets are committed every few seconds, before partitions are revoked, and at the end, always after the last record
that was written. A record may be printed twice (if we are killed in between), and none is left out. Ctrl-C commits and
leaves the group, so that the other members continue at once.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from typing import Final

from ixion.cli.access import Access
from ixion.cli.consume.copy import POLL_S, SOON_S, Copy
from ixion.cli.output import note
from ixion.clients import Consumer, RebalanceListener
from ixion.clients.admin.offsets import EARLIEST, LATEST
from ixion.clients.admin.runner import AdminRunner
from ixion.clients.admin.starts import find_topic, offsets_at, resolve_start
from ixion.clients.assignors import ASSIGNORS
from ixion.clients.core.consumer.errors import CommitFailedError
from ixion.clients.metadata import TopicPartition
from ixion.clients.starts import Start
from ixion.language.model.errors import KafkaError

COMMIT_S: Final = 5.0  # Kafka's default
LOOK_MS: Final = 3_000  # how often to look for new partitions


def consume_in_group(
    admin: AdminRunner, access: Access, group: str, copy: Copy, begin: Start, exit_at_end: bool
) -> None:
    for topic in copy.topics:
        admin.run(find_topic, topic)  # an unknown one is reported with the nearest name
    consumer = Consumer(
        access.bootstrap,
        group=group,
        client_id="ixion-cli",
        enable_auto_commit=False,
        isolation_level="read_committed" if copy.read_committed else "read_uncommitted",
        metadata_max_age_ms=LOOK_MS,
        partition_assignment_strategy=tuple(ASSIGNORS),  # so that it can join any group
        allow_auto_create_topics=False,
        **access.security,
    )
    with consumer:
        part = Part(admin, consumer, copy, begin, exit_at_end)
        consumer.subscribe(copy.topics, part)
        try:
            part.follow()
        finally:
            part.commit()


class Part(RebalanceListener):
    """Our assigned partitions, and how far they are written and committed."""

    def __init__(self, admin: AdminRunner, consumer: Consumer, copy: Copy, begin: Start, exit_at_end: bool) -> None:
        self._admin = admin
        self._consumer = consumer
        self._copy = copy
        self._begin = begin
        self._exit_at_end = exit_at_end
        self._ends: dict[TopicPartition, int] = {}
        self._committed: dict[TopicPartition, int] = {}
        self._is_in = False  # whether the group has sent an assignment, even an empty one

    def follow(self) -> None:
        """Copy until `left` is reached, until the ends if asked for, or for ever."""
        copy = self._copy
        next_s = time.monotonic() + COMMIT_S
        trouble = Trouble()
        while not copy.is_done and not self._is_at_end():
            copy.take(self._consumer, self._ends if self._exit_at_end else None, POLL_S)
            trouble.look(self._consumer.trouble)
            if time.monotonic() >= next_s:
                self.commit()
                next_s = time.monotonic() + COMMIT_S

    def on_assigned(self, partitions: Sequence[TopicPartition]) -> None:
        places = list(partitions)
        held = self._consumer.assignment()
        offsets = self._starting_offsets(places)
        for place, offset in offsets.items():
            self._consumer.seek(place, offset)
        copy = self._copy
        copy.positions = {place: copy.positions[place] for place in copy.positions if place in held} | offsets
        self._committed = {place: copy.positions[place] for place in held if place in self._committed} | offsets
        if self._exit_at_end and places:
            self._ends.update(self._admin.run(offsets_at, places, LATEST, copy.read_committed))
        self._ends = {place: end for place, end in self._ends.items() if place in held}
        self._is_in = True
        if sys.stderr.isatty():
            numbers = ", ".join(str(place.partition) for place in held)
            metadata = self._consumer.group_metadata()
            note(f"generation {metadata.generation_id} of {metadata.group_id}: partitions {numbers or 'none'}")

    def on_revoked(self, partitions: Sequence[TopicPartition]) -> None:
        self.commit()
        self.on_lost(partitions)

    def on_lost(self, partitions: Sequence[TopicPartition]) -> None:
        for place in partitions:
            self._copy.positions.pop(place, None)
            self._committed.pop(place, None)
            self._ends.pop(place, None)

    def commit(self) -> None:
        """Commit positions that have moved since the last commit."""
        sys.stdout.buffer.flush()
        positions = self._copy.positions
        moved = {place: offset for place, offset in positions.items() if self._committed.get(place) != offset}
        if moved:
            try:
                self._consumer.commit(moved)
            except CommitFailedError:
                return  # the group has rebalanced without us; the next poll joins again
            self._committed.update(moved)

    def _is_at_end(self) -> bool:
        positions = self._copy.positions
        return self._exit_at_end and self._is_in and all(positions[place] >= end for place, end in self._ends.items())

    def _starting_offsets(self, places: list[TopicPartition]) -> dict[TopicPartition, int]:
        """Committed offsets; without one, the place of --offset, or the first record."""
        if not places:
            return {}
        stored = self._consumer.committed(places)
        fresh = [place for place in places if stored[place] is None]
        start = Start(EARLIEST) if self._begin.stored else self._begin
        found: dict[TopicPartition, int] = {}
        if fresh:
            found = self._admin.run(resolve_start, fresh, start, read_committed=self._copy.read_committed)
        return {**found, **{place: offset for place, offset in stored.items() if offset is not None}}


class Trouble:
    """Reports a problem that lasts, once."""

    def __init__(self) -> None:
        self._since_s = 0.0
        self._is_said = True

    def look(self, trouble: KafkaError | None) -> None:
        if trouble is None:
            self._since_s = time.monotonic()
            self._is_said = False
        elif not self._is_said and time.monotonic() - self._since_s > SOON_S:
            note(f"{trouble.message} (trying again)")
            self._is_said = True
