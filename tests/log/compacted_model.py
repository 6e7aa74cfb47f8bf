"""What the list of `compacted_life` is made of, and how a client reads the log beside it."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from ixion.broker.log.log import Log
from ixion.broker.log.reader import read
from ixion.broker.log.view import Bound
from ixion.language.records.batches import iter_batches
from ixion.language.records.control import ControlType, control_type

FAR = 1 << 60


@dataclass(slots=True)
class Txn:
    producer: int
    batches: list[tuple[int, int]] = field(default_factory=list)  # first and last offset of each
    marker: int = -1
    aborted: bool = False


@dataclass(slots=True)
class Entry:
    offset: int
    key: bytes
    value: bytes | None
    txn: Txn | None
    dead_ms: int = FAR  # a tombstone: from when on a compaction may drop it


@dataclass(slots=True)
class Producer:
    number: int
    epoch: int = 0
    sequence: int = 0
    txn: Txn | None = None


def read_all(log: Log, bound: Bound, chance: random.Random, when: str) -> dict[int, tuple[bytes | None, bytes | None]]:
    """What a client finds from the log start on; at read_committed without aborted records, as Kafka's clients
    leave them out."""
    found: dict[int, tuple[bytes | None, bytes | None]] = {}
    offset = log.log_start
    while True:
        data = read(log, offset, chance.choice([1, 300, 5000]), bound)
        if not data.records:
            return found
        coming = sorted(data.aborted or (), key=lambda txn: txn.first_offset)
        aborting: set[int] = set()
        for view in iter_batches(data.records):
            assert view.crc_is_valid(), when
            while coming and coming[0].first_offset <= view.last_offset:
                aborting.add(coming.pop(0).producer_id)
            if view.is_control:
                if view.count and control_type(view) == ControlType.ABORT:
                    aborting.discard(int(view.producer_id))
            elif not view.is_transactional or int(view.producer_id) not in aborting:
                for record in view.records():
                    if record.offset >= log.log_start:
                        assert record.offset not in found, f"{when}: offset {record.offset} is there twice"
                        found[int(record.offset)] = (record.key, record.value)
            assert view.last_offset >= offset, when
            offset = int(view.last_offset) + 1
