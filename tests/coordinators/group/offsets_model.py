"""The expected offsets of a group, from acknowledged commits: the model that the state machines compare with.

A commit counts by its place in the log. One that was not answered before the broker stopped may count or not; the next
look decides, and from then on it must stay.
"""

from __future__ import annotations

from typing import NamedTuple

from ixion.broker.coordinators.group.commits import Committer, Wanted
from ixion.broker.coordinators.group.stored_offsets import OffsetReader
from ixion.language.model.errors import ErrorCode
from ixion.language.model.topic_partition import TopicPartition
from ixion.language.records.control import transaction_marker
from tests.coordinators.group.kit import GROUP, World, whole

PARTITIONS: list[TopicPartition] = [("t", 0), ("t", 1), ("u", 0)]
PRODUCERS = [7, 8]


class Value(NamedTuple):
    offset: int
    leader_epoch: int
    metadata: str


class OffsetsModel:
    def __init__(self) -> None:
        self._next = 0  # every commit has values of its own, and a place in the log
        self._committed: dict[TopicPartition, tuple[int, Value | None]] = dict.fromkeys(PARTITIONS, (0, None))
        self._maybe: dict[TopicPartition, set[Value]] = {partition: set() for partition in PARTITIONS}
        self.pending: dict[int, dict[TopicPartition, tuple[int, Value]]] = {}

    def commit(self, world: World, committer: Committer, partitions: list[TopicPartition]) -> list[ErrorCode]:
        """The codes, once they are there: an empty list fills when the log answers."""
        self._next += 1
        place = self._next
        wanted = [
            Wanted(partition, 1000 * place + number, place, f"note {place}.{number}")
            for number, partition in enumerate(partitions)
        ]
        values = {each.partition: Value(each.offset, each.leader_epoch, each.metadata or "") for each in wanted}
        told: list[ErrorCode] = []

        def answered(codes: list[ErrorCode]) -> None:
            told.extend(codes)
            for partition, code in zip(partitions, codes, strict=True):
                self._maybe[partition].discard(values[partition])
                if code is not ErrorCode.NONE:
                    continue
                if committer.is_transactional:
                    self.pending.setdefault(committer.producer_id, {})[partition] = (place, values[partition])
                else:
                    self._committed[partition] = (place, values[partition])

        for partition in partitions:
            self._maybe[partition].add(values[partition])
        world.groups.commits.commit(committer, wanted, answered)
        world.run()
        return told

    def end_transaction(self, world: World, producer_id: int, committed: bool) -> None:
        """As the replica manager does: the marker into the log, then word to the coordinator."""
        world.log.write(
            transaction_marker(
                commit=committed, producer_id=producer_id, producer_epoch=0, coordinator_epoch=0, timestamp=0
            )
        )
        world.groups.on_transaction_marker(0, producer_id, committed)
        for partition, (place, value) in self.pending.pop(producer_id, {}).items():
            if committed and place > self._committed[partition][0]:
                self._committed[partition] = (place, value)

    def forget(self, partitions: list[TopicPartition]) -> None:
        """They were deleted, what is pending for them included."""
        self._next += 1
        for partition in partitions:
            self._committed[partition] = (self._next, None)
            for pending in self.pending.values():
                pending.pop(partition, None)

    def check(self, world: World) -> None:
        found = whole(world.groups.offsets.fetch(OffsetReader(GROUP), PARTITIONS, require_stable=False))
        assert isinstance(found, list)
        for partition, committed, _ in found:
            seen = None if committed is None else Value(committed.offset, committed.leader_epoch, committed.metadata)
            place, known = self._committed[partition]
            assert seen == known or seen in self._maybe[partition], f"{partition}: {seen}, and not {known}"
            if seen != known:
                assert seen is not None
                self._committed[partition] = (max(place, seen.leader_epoch), seen)
            if not world.log.held:
                self._maybe[partition].clear()
        unstable = {partition for pending in self.pending.values() for partition in pending}
        stable = whole(world.groups.offsets.fetch(OffsetReader(GROUP), PARTITIONS, require_stable=True))
        assert isinstance(stable, list)
        assert {each[0] for each in stable if each[2] is ErrorCode.UNSTABLE_OFFSET_COMMIT} == unstable
