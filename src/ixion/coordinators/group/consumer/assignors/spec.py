"""What an assignor is told."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ixion.coordinators.group.consumer.assignment import Assignment


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    topics: frozenset[bytes]  # ids of existing topics that it has subscribed to
    before: Assignment = field(default_factory=dict)  # its target so far
    instance_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    readers: Mapping[str, Reader]  # by member id
    partitions: Mapping[bytes, int]  # how many each topic has

    def in_order(self) -> list[str]:
        """Member ids in an order that a restart of a static member does not change: by instance, then those without."""

        def place(member_id: str) -> tuple[bool, str]:
            instance_id = self.readers[member_id].instance_id
            return instance_id is None, member_id if instance_id is None else instance_id

        return sorted(self.readers, key=place)
