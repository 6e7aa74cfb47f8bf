"""The input of an assignor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from ixion.broker.coordinators.group.consumer.assignment import Assignment
from ixion.timer.turns import Steps, sort_steps

STEP: Final = 64  # members or partitions looked at in one step


@dataclass(frozen=True, slots=True, kw_only=True)
class Subscriber:
    topics: frozenset[bytes]  # ids of existing topics that it has subscribed to
    before: Assignment = field(default_factory=dict)  # its target so far
    instance_id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Spec:
    readers: Mapping[str, Subscriber]  # by member id
    partitions: Mapping[bytes, int]  # how many each topic has

    def in_order(self) -> Steps[list[str]]:
        """Static members by instance id, then the others: a restart of a static member does not change this order."""
        static: list[tuple[str, str]] = []
        dynamic: list[str] = []
        for number, (member_id, reader) in enumerate(self.readers.items()):
            if reader.instance_id is None:
                dynamic.append(member_id)
            else:
                static.append((reader.instance_id, member_id))
            if number % STEP == 0:
                yield
        by_instance = yield from sort_steps(static)
        by_id = yield from sort_steps(dynamic)
        return [member_id for _, member_id in by_instance] + by_id
