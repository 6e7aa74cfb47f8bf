"""The results of a call about many things: a value or a fault for each.

found = admin.create_topics([NewTopic("orders"), NewTopic("orders/1")])
found["orders"]                 # its value
found["orders/1"]               # raises the KafkaError of this one
found.faults                    # {"orders/1": KafkaError(...)}
found.check()                   # all values, or the first fault is raised
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Generic, TypeVar

from ixion.language.model.errors import KafkaError

K = TypeVar("K")
V = TypeVar("V")


class Results(Generic[K, V]):
    """What became of each item of a call: its result in `done`, or its error in `faults`."""

    def __init__(self) -> None:
        self.done: dict[K, V] = {}
        self.faults: dict[K, KafkaError] = {}

    def __getitem__(self, key: K) -> V:
        if key in self.faults:
            raise self.faults[key]
        return self.done[key]

    def __contains__(self, key: object) -> bool:
        return key in self.done or key in self.faults

    def __iter__(self) -> Iterator[K]:
        yield from self.done
        yield from self.faults

    def __len__(self) -> int:
        return len(self.done) + len(self.faults)

    def __repr__(self) -> str:
        return f"<{len(self.done)} done, {len(self.faults)} failed: {self.faults or self.done}>"

    def check(self) -> dict[K, V]:
        """All values. The first fault is raised if there is one."""
        for fault in self.faults.values():
            raise fault
        return self.done
