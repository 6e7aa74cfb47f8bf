"""Errors of damaged files."""

from __future__ import annotations


class CorruptFileError(Exception):
    """A file with wrong contents. Its loader decides what to do about it."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path
        self.reason = reason


class DamagedIndexError(CorruptFileError):
    """A damaged index of a segment. It can be rebuilt from the segment; see `reindexing`."""

    def __init__(self, path: str, base_offset: int, reason: str) -> None:
        super().__init__(path, reason)
        self.base_offset = base_offset
