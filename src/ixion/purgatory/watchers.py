"""The watch lists: which operations wait for which key.

The keys are spread over shards, each with a mutex and a table from key to watch list. The first operation that watches
a key creates its list; the list is removed when it is empty. No operation is lost then, because looking up a list and
appending to it is one step under the shard's mutex, and so is finding it empty and removing it:

    1. thread a, checking key k, has completed the last operation in k's list
    2. thread b watches k: it finds the list (a has not removed it yet) and appends
    3. thread a checks the list again under the mutex, sees b's operation, and keeps the list

If step 2 were outside the mutex, b could append to a list that a has just removed, and no check would find it.

A list consists of chunks, so that completed operations can be removed in steps: each step holds the mutex for one
chunk, and other threads run between two steps.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Final

from ixion.purgatory.operation import DelayedOperation
from ixion.timer.mutex import Mutex

CHUNK: Final = 512  # operations; freeing them takes well under 0.1 ms


class Watchers:
    """The operations that watch one key, oldest first. The shard's mutex guards it."""

    __slots__ = ("chunks",)

    def __init__(self) -> None:
        self.chunks: list[list[DelayedOperation]] = [[]]

    def append(self, operation: DelayedOperation) -> None:
        last = self.chunks[-1]
        if len(last) < CHUNK:
            last.append(operation)
        else:
            self.chunks.append([operation])

    def operations(self) -> list[DelayedOperation]:
        result: list[DelayedOperation] = []
        for chunk in self.chunks:
            result.extend(chunk)
        return result

    def remove_gone(self, index: int, gone: list[DelayedOperation]) -> bool:
        """Move the completed operations of one chunk to `gone`. True if the chunk was removed too."""
        chunk = self.chunks[index]
        kept: list[DelayedOperation] = []
        for operation in chunk:
            if operation._completed or operation._dropped:
                gone.append(operation)
            else:
                kept.append(operation)
        if index > 0 and len(self.chunks[index - 1]) + len(kept) <= CHUNK:
            self.chunks[index - 1].extend(kept)
            del self.chunks[index]
            return True
        self.chunks[index] = kept
        return False

    def is_empty(self) -> bool:
        return len(self.chunks) == 1 and not self.chunks[0]

    def waiting(self, most: int) -> list[DelayedOperation]:
        """The first operations that still wait, at most so many."""
        found: list[DelayedOperation] = []
        for chunk in self.chunks:
            for operation in chunk:
                if len(found) >= most:
                    return found
                if not operation._completed and not operation._dropped:
                    found.append(operation)
        return found

    def count(self) -> int:
        return sum([len(chunk) for chunk in self.chunks])


class WatcherShard:
    __slots__ = ("by_key", "mutex")

    def __init__(self) -> None:
        self.mutex = Mutex()
        self.by_key: dict[Hashable, Watchers] = {}

    def watch(self, key: Hashable, operation: DelayedOperation) -> None:
        self.mutex.acquire()
        try:
            watchers = self.by_key.get(key)
            if watchers is None:
                watchers = self.by_key[key] = Watchers()
            watchers.append(operation)
        finally:
            self.mutex.release()

    def operations(self, key: Hashable) -> list[DelayedOperation]:
        self.mutex.acquire()
        try:
            watchers = self.by_key.get(key)
            return [] if watchers is None else watchers.operations()
        finally:
            self.mutex.release()

    def waiting(self, key: Hashable, most: int) -> tuple[int, list[DelayedOperation]]:
        """How many entries the key's list has, and the first operations in it that still wait."""
        self.mutex.acquire()
        try:
            watchers = self.by_key.get(key)
            return (0, []) if watchers is None else (watchers.count(), watchers.waiting(most))
        finally:
            self.mutex.release()

    def forget(self, key: Hashable) -> list[DelayedOperation]:
        """Remove the key's list and return its operations."""
        self.mutex.acquire()
        try:
            watchers = self.by_key.pop(key, None)
            return [] if watchers is None else watchers.operations()
        finally:
            self.mutex.release()

    def remove_gone(self, key: Hashable, index: int) -> tuple[int, int]:
        """Clear chunk `index` of the key's list. Returns how many were removed, and the next chunk (-1: none)."""
        gone: list[DelayedOperation] = []  # freed after the mutex is released, because freeing is slow
        self.mutex.acquire()
        try:
            watchers = self.by_key.get(key)
            if watchers is None or index >= len(watchers.chunks):
                return 0, -1
            if not watchers.remove_gone(index, gone):
                index += 1
            if watchers.is_empty():
                del self.by_key[key]
                index = -1
            elif index >= len(watchers.chunks):
                index = -1
        finally:
            self.mutex.release()
        return len(gone), index

    def keys(self) -> list[Hashable]:
        self.mutex.acquire()
        try:
            return list(self.by_key)
        finally:
            self.mutex.release()

    def count(self) -> int:
        self.mutex.acquire()
        try:
            return sum([watchers.count() for watchers in self.by_key.values()])
        finally:
            self.mutex.release()
