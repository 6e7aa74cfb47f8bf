"""What groups may hold in memory for their members.

Whoever can reach the broker can make it remember: what members offer or subscribe to (a request carries up to 100 MB),
and ids that were given out and nobody came back with. One classic group is bound by `rules.has_memory_for`, one member
of a consumer group by the size of a record; all groups together are bound here:

    offers    256 MiB, a protocol counting its name, its metadata and 100 bytes for being there, a consumer group
              and its members all that they take (see `consumer.demand`)
    ids       100,000, of some 800 bytes each

Beyond that new members are sent away with COORDINATOR_NOT_AVAILABLE, on which clients try again: sessions end, ids
expire, and there is room again. (Kafka sets no bound.)
"""

from __future__ import annotations

from typing import Final

from ixion.coordinators.group.classic.group import ClassicGroup
from ixion.coordinators.group.classic.member import Protocols, size_of

MOST_BYTES: Final = 256 << 20
MOST_IDS: Final = 100_000


class Memory:
    def __init__(self) -> None:
        self.most_bytes = MOST_BYTES
        self.most_ids = MOST_IDS
        self.held_bytes = 0
        self.ids = 0
        self._noted: dict[str, tuple[int, int]] = {}  # by group id: bytes, ids

    def note(self, group: ClassicGroup) -> None:
        """The group has changed."""
        self.hold(group.group_id, group.metadata_bytes, len(group.pending_members))

    def forget(self, group: ClassicGroup) -> None:
        self.hold(group.group_id, 0)

    def has_room_for(self, group: ClassicGroup, member_id: str, protocols: Protocols) -> bool:
        """Whether somebody may join. Who is a member stays one, and who was given an id needs no other."""
        if member_id in group.members:
            return True
        has_id = bool(member_id) or self.ids < self.most_ids
        return has_id and self.has_bytes_for(size_of(protocols))

    def has_bytes_for(self, more: int) -> bool:
        return self.held_bytes + more <= self.most_bytes

    def hold(self, group_id: str, held_bytes: int, ids: int = 0) -> None:
        """From now on the group holds this much."""
        before_bytes, before_ids = self._noted.pop(group_id, (0, 0))
        self.held_bytes += held_bytes - before_bytes
        self.ids += ids - before_ids
        if held_bytes or ids:
            self._noted[group_id] = (held_bytes, ids)
