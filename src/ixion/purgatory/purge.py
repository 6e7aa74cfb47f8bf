"""Removes completed operations from the watch lists, step by step.

An operation that watches three keys and completes through one of them stays in the lists of the other two until they
are checked or purged. A purge walks every list. Freeing hundreds of thousands of operations at once would block all
other threads, so each `step` clears one chunk, and the caller (a thread or an event loop) runs other work between two
steps.
"""

from __future__ import annotations

from collections.abc import Hashable

from ixion.purgatory.watchers import WatcherShard


class Purge:
    __slots__ = ("_chunk", "_keys", "_next_shard", "_shard", "_shards", "purged")

    def __init__(self, shards: list[WatcherShard]) -> None:
        self._shards = shards
        self._next_shard = 0
        self._shard: WatcherShard | None = None
        self._keys: list[Hashable] = []  # keys of _shard still to do; the last one is in progress
        self._chunk = 0
        self.purged = 0

    def step(self) -> bool:
        """Clear one chunk. False when there is nothing left to do."""
        while not self._keys:
            if self._next_shard == len(self._shards):
                return False
            self._shard = self._shards[self._next_shard]
            self._next_shard += 1
            if self._shard.by_key:
                self._keys = self._shard.keys()
            self._chunk = 0
        shard = self._shard
        assert shard is not None
        cleared, self._chunk = shard.remove_gone(self._keys[-1], self._chunk)
        self.purged += cleared
        if self._chunk < 0:
            self._keys.pop()
            self._chunk = 0
        return True
