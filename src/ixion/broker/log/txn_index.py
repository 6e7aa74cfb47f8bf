"""`.txnindex`: the aborted transactions that end in a segment.

An entry is 34 bytes: version (16 bits, 0), producer id, first offset, offset of the abort marker, and the last stable
offset at the moment the marker was written (64 bits each). Entries are in the order of their markers. Most segments
have no entries and no file. As with the other indexes, an append adds its entry in memory (see `index_file`).

A reader at read_committed that fetched [from, to) needs every aborted transaction that overlaps this range: its marker
is at or after `from`, and its first record is before `to`. The search ends at an entry whose last stable offset is at
least `to`: by then every transaction below `to` was decided.
"""

# This module is compiled: see setup.py.

from __future__ import annotations

import struct
from typing import Final

from ixion.broker.log.corrupt import CorruptFileError
from ixion.broker.log.files import Files
from ixion.broker.log.index_file import IndexFile

ENTRY_SIZE: Final = 34
VERSION: Final = 0

_ENTRY = struct.Struct(">hqqqq")


class AbortedTxn:
    __slots__ = ("first_offset", "last_offset", "last_stable_offset", "producer_id")

    def __init__(self, producer_id: int, first_offset: int, last_offset: int, last_stable_offset: int) -> None:
        self.producer_id: Final = producer_id
        self.first_offset: Final = first_offset
        self.last_offset: Final = last_offset
        self.last_stable_offset: Final = last_stable_offset

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AbortedTxn) and self.fields() == other.fields()

    def __hash__(self) -> int:
        return hash(self.fields())

    def __repr__(self) -> str:
        return f"AbortedTxn{self.fields()}"

    def fields(self) -> tuple[int, int, int, int]:
        return (self.producer_id, self.first_offset, self.last_offset, self.last_stable_offset)


class TxnIndex:
    __slots__ = ("_entries", "base_offset", "file")

    def __init__(self, files: Files, path: str, base_offset: int, size: int) -> None:
        """`size` is the length of the file; -1 if there is none."""
        self.base_offset = base_offset
        self.file = IndexFile(files, path, ENTRY_SIZE, size)
        self._entries: list[AbortedTxn] | None = None if size > 0 else []

    def append(self, txn: AbortedTxn) -> None:
        entries = self.entries()
        if entries and entries[-1].last_offset >= txn.last_offset:
            return
        self.file.append(_ENTRY.pack(VERSION, *txn.fields()))
        entries.append(txn)

    def collect(self, first: int, end: int, found: list[AbortedTxn]) -> bool:
        """Adds the transactions that overlap [first, end); True if no later segment can add more."""
        for txn in self.entries():
            if txn.last_offset >= first and txn.first_offset < end:
                found.append(txn)
            # Apache Kafka's followers write the start of a later transaction of the same fetch, which may be truncated.
            if min(txn.last_stable_offset, txn.last_offset + 1) >= end:
                return True
        return False

    def truncate(self, offset: int) -> None:
        """Drops the entries whose marker is at or after `offset`."""
        entries = self.entries()
        keep = len(entries)
        while keep and entries[keep - 1].last_offset >= offset:
            keep -= 1
        self.file.cut(keep)
        del entries[keep:]

    def reset(self) -> None:
        """Drops every entry in memory; a later `replace` updates the file."""
        self.file.reset()
        self._entries = []

    def load(self) -> None:
        """Reads the file, so that adding an entry needs no disk."""
        self.entries()
        self.file.load()

    def write(self) -> bool:
        """Writes new entries; True if this created the file. Without entries there is no file."""
        return (self.file.count > 0 or self.file.is_on_disk) and self.file.write()

    def replace(self, sync: bool) -> None:
        """Replaces the file by the entries in memory. Without entries there is no file."""
        if self.file.count > 0 or self.file.is_on_disk:
            self.file.replace(sync)

    def check(self) -> None:
        self.entries()

    def entries(self) -> list[AbortedTxn]:
        if self._entries is None:
            file = self.file
            if file.has_remainder:
                raise file.damaged(f"its size is not a multiple of {ENTRY_SIZE}")
            try:
                self._entries = parse_aborted(file.path, bytes(file.view()), self.base_offset)
            except CorruptFileError as error:
                raise file.damaged(error.reason) from None
        return self._entries


def read_aborted(path: str, base_offset: int) -> list[AbortedTxn]:
    with open(path, "rb") as file:
        data = file.read()
    if len(data) % ENTRY_SIZE:
        raise CorruptFileError(path, f"{len(data)} bytes are not a multiple of {ENTRY_SIZE}")
    return parse_aborted(path, data, base_offset)


def parse_aborted(path: str, data: bytes, base_offset: int) -> list[AbortedTxn]:
    entries: list[AbortedTxn] = []
    last_offset = base_offset - 1
    for version, producer_id, first, last, stable in _ENTRY.iter_unpack(data):
        if version != VERSION:
            raise CorruptFileError(path, f"entry {len(entries)} has version {version}")
        if producer_id < 0 or not 0 <= first <= last or last <= last_offset or stable < 0:
            raise CorruptFileError(path, f"entry {len(entries)} is ({producer_id}, {first}, {last}, {stable})")
        entries.append(AbortedTxn(producer_id, first, last, stable))
        last_offset = last
    return entries
