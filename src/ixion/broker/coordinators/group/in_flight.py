"""Commits that are in the log and not answered yet, because not all replicas have them.

They are in no table of offsets before they are replicated. Whatever removes offsets must look here, too: its tombstones
come later in the log than these commits.

    expiry           leaves a partition with a commit in flight alone: that commit is young
    a deletion       writes tombstones for it, because the log has the commit before the deletion; the commit is
                     answered, and has no effect
"""

from __future__ import annotations

from collections.abc import Iterable

from ixion.language.model.topic_partition import TopicPartition


class Flight:
    """A commit on its way."""

    __slots__ = ("buried", "commit_ms", "group_id", "partitions")

    def __init__(self, group_id: str, partitions: frozenset[TopicPartition], commit_ms: int) -> None:
        self.group_id = group_id
        self.partitions = partitions
        self.commit_ms = commit_ms
        self.buried: set[TopicPartition] = set()  # deleted by a record that is later in the log


class InFlight:
    def __init__(self) -> None:
        self._flights: dict[str, list[Flight]] = {}  # by group id

    def begin(self, group_id: str, partitions: Iterable[TopicPartition], commit_ms: int) -> Flight:
        flight = Flight(group_id, frozenset(partitions), commit_ms)
        self._flights.setdefault(group_id, []).append(flight)
        return flight

    def end(self, flight: Flight) -> None:
        """Does nothing if `clear` has ended it."""
        flights = self._flights.get(flight.group_id, [])
        if flight in flights:
            flights.remove(flight)
            if not flights:
                del self._flights[flight.group_id]

    def of(self, group_id: str) -> list[Flight]:
        return list(self._flights.get(group_id, ()))

    def has(self, group_id: str, partition: TopicPartition, after_ms: int = -1) -> bool:
        """Whether a commit of the partition is on its way that was made after that time."""
        flights = self._flights.get(group_id, ())
        return any(partition in flight.partitions and flight.commit_ms > after_ms for flight in flights)

    def partitions(self, group_id: str) -> set[TopicPartition]:
        return {partition for flight in self._flights.get(group_id, ()) for partition in flight.partitions}

    def clear(self) -> None:
        self._flights.clear()
