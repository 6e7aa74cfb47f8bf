"""Errors of files that do not hold what their names promise."""

from __future__ import annotations


class CorruptFileError(Exception):
    """A file that cannot be believed; `path` and `reason` say which and why. The loader decides what to do about it."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason


class DamagedIndexError(CorruptFileError):
    """An index of a segment that cannot be believed. It can be rebuilt from the segment; see `reindexing`."""

    def __init__(self, path: str, base_offset: int, reason: str) -> None:
        super().__init__(path, reason)
        self.base_offset = base_offset
