"""A table with a budget in bytes; beyond it, the entries that were not used for the longest time are dropped.

Clients choose the names in it, and how long these are: a name of 32,767 bytes takes up to 131,000 in memory. So a count
of entries bounds nothing. Each entry counts the memory of its texts and a constant for the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from sys import getsizeof
from typing import Final, Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")


class LeastUsed(Generic[K, V]):
    def __init__(self, most_bytes: int, each_bytes: int) -> None:
        """`each_bytes`: of an entry beside the texts of its key."""
        self.most_bytes: Final = most_bytes
        self.bytes = 0
        self._each_bytes = each_bytes
        self._entries: dict[K, V] = {}

    def __len__(self) -> int:
        return len(self._entries)

    def clear(self) -> None:
        self._entries.clear()
        self.bytes = 0

    def get(self, key: K, make: Callable[[], V]) -> V:
        """The value of `key`, made if there is none. It is the most recently used from now on."""
        try:
            value = self._entries.pop(key)
        except KeyError:
            value = make()
            self.bytes += self._size(key)
        self._entries[key] = value
        while self.bytes > self.most_bytes:
            oldest = next(iter(self._entries))
            del self._entries[oldest]
            self.bytes -= self._size(oldest)
        return value

    def _size(self, key: K) -> int:
        texts = key if isinstance(key, tuple) else (key,)
        return self._each_bytes + sum([getsizeof(text) for text in texts])
