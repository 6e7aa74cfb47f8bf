"""Finds the records of names that ixion 0.1 kept in another partition of an internal topic than Kafka does.

A name is a group id or a transactional id; it is the first field of every key in both topics. `Found` holds the last
record of each key, as compaction would leave it. Records of open transactions are apart, by producer: they count once
the marker of their transaction is there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple

from ixion.broker.log.log import Log
from ixion.broker.log.reader import read
from ixion.broker.log.view import Bound
from ixion.language.model.placement import masked_partition_of, partition_of
from ixion.language.records.batch import BatchView
from ixion.language.records.batches import iter_batches
from ixion.language.records.control import ControlType, control_type

CHUNK: Final = 1 << 20  # bytes read at a time
PREFIX: Final = 2  # bytes of the record type in front of a key
HEAD: Final = PREFIX + 2  # and of the length of the name


class Last(NamedTuple):
    value: bytes | None
    timestamp: int


Producer = tuple[int, int]  # id and epoch


class Found:
    def __init__(self) -> None:
        self.decided: dict[bytes, Last] = {}
        self.open: dict[Producer, dict[bytes, Last]] = {}

    def put(self, batch: BatchView, key: bytes, last: Last) -> None:
        if batch.is_transactional:
            producer = int(batch.producer_id), int(batch.producer_epoch)
            self.open.setdefault(producer, {})[key] = last
        else:
            self.decided[key] = last

    def end(self, producer_id: int, committed: bool) -> None:
        for producer in [each for each in self.open if each[0] == producer_id]:
            records = self.open.pop(producer)
            if committed:
                self.decided.update(records)


def misplaced(log: Log, partitions: int) -> Found:
    """What is in this partition by the rule of ixion 0.1, and does not belong here by Kafka's."""

    def is_misplaced(name: str) -> bool:
        return log.partition == masked_partition_of(name, partitions) != partition_of(name, partitions)

    return find(log, is_misplaced)


def find(log: Log, wanted: Callable[[str], bool]) -> Found:
    """The last records of the wanted names."""
    found = Found()
    for batch in batches(log):
        if batch.is_control:
            kind = control_type(batch)
            if kind in (ControlType.COMMIT, ControlType.ABORT):
                found.end(int(batch.producer_id), kind is ControlType.COMMIT)
            continue
        for record in batch.records():
            name = name_of(record.key)
            if name is not None and wanted(name):
                assert record.key is not None
                found.put(batch, record.key, Last(record.value, int(record.timestamp)))
    return found


def batches(log: Log) -> Iterator[BatchView]:
    offset = log.log_start
    while True:
        data = read(log, offset, CHUNK, Bound.END)
        if not data.records:
            return
        for batch in iter_batches(data.records):
            yield batch
            offset = int(batch.last_offset) + 1


def name_of(key: bytes | None) -> str | None:
    """None if the key is not one of a coordinator."""
    if key is None or len(key) < HEAD:
        return None
    end = HEAD + int.from_bytes(key[PREFIX:HEAD])
    try:
        return key[HEAD:end].decode() if len(key) >= end else None
    except UnicodeDecodeError:
        return None


def living(records: Mapping[bytes, Last]) -> dict[bytes, Last]:
    """Those that no tombstone has removed."""
    return {key: last for key, last in records.items() if last.value is not None}
