"""Range: each topic by itself, consecutive partitions to members in their order.

With racks, members first get partitions near them, as many as their share allows. Topics with the same readers and the
same number of partitions are kept together: their partitions of one number go to one member, so that it can join them
(KIP-881). The rest is then assigned in order, near or not.

Example: t and u with 4 partitions each, readers a (rack x) and b (rack y). Of both topics, 0 and 3 have a replica in x,
1 and 2 in y: a gets t0 t3 u0 u3, b gets t1 t2 u1 u2. Without racks: a gets t0 t1 u0 u1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from ixion.clients.assignors.hash_order import in_hash_order
from ixion.clients.assignors.members import Assignment, Member, Members, Racks, in_order, racks_matter
from ixion.clients.metadata import TopicPartition


def assign(members: Members, counts: Mapping[str, int], racks: Racks) -> Assignment:
    order = in_order(members)
    subscribed = in_hash_order(topic for member in in_hash_order(members) for topic in sorted(members[member].topics))
    shares = [
        Share(topic, counts[topic], {each: members[each] for each in order if topic in members[each].topics}, racks)
        for topic in in_hash_order(topic for topic in subscribed if counts.get(topic))
    ]
    assignment: Assignment = {member: [] for member in members}
    uses_racks = any(share.uses_racks for share in shares)
    if uses_racks:
        for together in alike(shares):
            if len(together) > 1:
                give_together(together, assignment)
            elif together[0].uses_racks:
                together[0].give_ranges(assignment, together[0].is_near)
    for share in shares:
        share.give_ranges(assignment, lambda _member, _place: True)
    if uses_racks:
        for places in assignment.values():
            places.sort()
    return assignment


class Share:
    """One topic: its unassigned partitions, and how many each of its readers may still get."""

    def __init__(self, topic: str, count: int, readers: Mapping[str, Member], racks: Racks) -> None:
        self.topic = topic
        self.count = count
        self.readers = {name: reader.rack for name, reader in readers.items()}
        self._racks = racks
        self._left = dict.fromkeys(TopicPartition(topic, number) for number in range(count))
        self._given = dict.fromkeys(readers, 0)
        self._least, self._extra = divmod(count, len(readers))  # _extra readers get one more than _least
        self.has_racks = any(self.readers.values())
        self.uses_racks = racks_matter(set(self.readers.values()) - {""}, racks, list(self._left))

    def is_near(self, reader: str, place: TopicPartition) -> bool:
        rack = self.readers[reader]
        return not rack or rack in self._racks.get(place, frozenset())

    def room(self, reader: str) -> int:
        return max(0, self._least + (self._extra > 0) - self._given[reader])

    def give(self, reader: str, places: list[TopicPartition], assignment: Assignment) -> None:
        assignment[reader] += places
        self._given[reader] += len(places)
        if self._given[reader] > self._least:
            self._extra -= 1
        for place in places:
            self._left.pop(place, None)

    def give_ranges(self, assignment: Assignment, may_have: Callable[[str, TopicPartition], bool]) -> None:
        for reader in self.readers:
            places = [place for place in self._left if may_have(reader, place)][: self.room(reader)]
            if places:
                self.give(reader, places, assignment)


def alike(shares: list[Share]) -> list[list[Share]]:
    """Topics with the same readers and the same number of partitions."""
    groups: dict[tuple[tuple[str, ...], int], list[Share]] = {}
    for share in shares:
        groups.setdefault((tuple(share.readers), share.count if share.has_racks else 0), []).append(share)
    return list(groups.values())


def give_together(shares: list[Share], assignment: Assignment) -> None:
    """Assign partitions of one number to one reader that is near all of them and has room for all."""
    if not shares[0].has_racks:
        return
    readers = list(shares[0].readers)
    for number in range(shares[0].count):
        for reader in readers:
            if all(
                share.is_near(reader, TopicPartition(share.topic, number)) and share.room(reader) for share in shares
            ):
                for share in shares:
                    share.give(reader, [TopicPartition(share.topic, number)], assignment)
                if not any(share.room(reader) for share in shares):
                    readers.remove(reader)
                break
