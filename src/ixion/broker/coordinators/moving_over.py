"""Moves groups and transactional ids from where ixion 0.1 kept them to the partitions where Kafka does.

It runs before a coordinator has read anything, on the logs themselves, and only on a broker that has every partition
and is their only replica. For each partition:

    1. the records of misplaced names are copied to their new partition       synced
    2. tombstones for them are written to the old one                         synced

A broker that is killed begins again with its next start. After 1 it finds the copies, which have the timestamps of the
originals, and makes none twice; after 2 it finds nothing. No coordinator serves in between, so nothing is newer than
what it copies, except for a cluster that Apache Kafka has served meanwhile: of two records with one key, the later
stays.

A transaction that is open has pending offsets in the old partition. They are copied as pending, and before that the new
partition is added to the transaction, so that its marker decides them there. Nothing ends a pending offset whose
transaction is not known; it stays where it is.

Blocking; for a worker thread.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final, NamedTuple

from ixion.broker.coordinators.misplaced import Found, Last, Producer, find, living, misplaced, name_of
from ixion.broker.coordinators.txn.snapshot import Snapshot
from ixion.broker.coordinators.txn.states import ENDING, State
from ixion.broker.coordinators.txn.storage import PLAIN, decode_snapshot, encode_snapshot
from ixion.broker.log.log import Log
from ixion.broker.log.prepare import Origin
from ixion.broker.replica.internal_topic import GROUP_OFFSETS
from ixion.language.model.placement import partition_of
from ixion.language.model.topic_partition import TopicPartition
from ixion.language.protocol.flaws import Flaw, UnsupportedVersionError
from ixion.language.protocol.storage import PREFIX_SIZE, record_type
from ixion.language.protocol.stored.record_types import RecordType
from ixion.language.records.builder import BatchBuilder

logger = logging.getLogger(__name__)

BATCH_BYTES: Final = 256 << 10
COMMITS: Final = frozenset({RecordType.LEGACY_OFFSET_COMMIT, RecordType.OFFSET_COMMIT})
UNDECIDED: Final = ENDING | {State.ONGOING}

Logs = Mapping[int, Log]  # every partition of a topic


class Moved(NamedTuple):
    names: int
    commits: int


def move_over(offsets: Logs, transactions: Logs) -> None:
    """The logs of `__consumer_offsets` and those of `__transaction_state`; there may be none."""
    found = {number: misplaced(log, len(offsets)) for number, log in offsets.items()}
    _add_partitions(transactions, found, len(offsets))
    groups = _move(offsets, found)
    ids = _move(transactions, {number: misplaced(log, len(transactions)) for number, log in transactions.items()})
    if groups.names or ids.names:
        logger.warning(
            "moved %d groups with %d committed offsets and %d transactional ids to the partitions where Apache Kafka"
            " keeps them",
            *(groups.names, groups.commits, ids.names),
        )


def _move(logs: Logs, found: Mapping[int, Found]) -> Moved:
    names: set[str] = set()
    commits = 0
    for number, here in found.items():
        records = living(here.decided)
        pending = {producer: living(some) for producer, some in here.open.items() if living(some)}
        keys = [*records, *(key for some in pending.values() for key in some)]
        if not keys:
            continue
        some_names = {name_of(key) or "" for key in keys}
        for target in sorted({partition_of(name, len(logs)) for name in some_names}):
            _copy(logs[target], len(logs), some_names, records, pending)
        _bury(logs[number], records, pending)
        names |= some_names
        commits += sum(record_type(key) in COMMITS for key in records)
    return Moved(len(names), commits)


def _copy(
    log: Log,
    partitions: int,
    names: set[str],
    records: Mapping[bytes, Last],
    pending: Mapping[Producer, Mapping[bytes, Last]],
) -> None:
    there = find(log, names.__contains__)

    def belongs(key: bytes) -> bool:
        return partition_of(name_of(key) or "", partitions) == log.partition

    def is_new(key: bytes, last: Last) -> bool:
        known = there.decided.get(key)
        return belongs(key) and (known is None or known.timestamp < last.timestamp)

    _append(log, [(key, last) for key, last in records.items() if is_new(key, last)])
    for producer, some in pending.items():
        known = there.open.get(producer, {})
        _append(log, [(key, last) for key, last in some.items() if belongs(key) and key not in known], producer)
    log.flush()


def _bury(log: Log, records: Mapping[bytes, Last], pending: Mapping[Producer, Mapping[bytes, Last]]) -> None:
    """Write tombstones. A consumer group is deleted from its members up, as Kafka requires: the record types of what
    belongs to a group are higher than its own."""

    def tombstones(some: Mapping[bytes, Last]) -> list[tuple[bytes, Last]]:
        keys = sorted(some, key=lambda key: (name_of(key) or "", -record_type(key)))
        return [(key, Last(None, some[key].timestamp)) for key in keys]

    _append(log, tombstones(records))
    for producer, some in pending.items():
        _append(log, tombstones(some), producer)
    log.flush()


def _append(log: Log, entries: Iterable[tuple[bytes, Last]], producer: Producer | None = None) -> None:
    epoch = max(log.epochs.latest, 0)
    builder = _builder(producer)
    for key, last in entries:
        if not builder.append(key, last.value, timestamp=last.timestamp):
            log.append_as_leader(builder.build(), epoch, Origin.WHOLE_CHANGE)
            builder = _builder(producer)
            builder.append(key, last.value, timestamp=last.timestamp)
    if builder.count:
        log.append_as_leader(builder.build(), epoch, Origin.WHOLE_CHANGE)


def _builder(producer: Producer | None) -> BatchBuilder:
    if producer is None:
        return BatchBuilder(max_bytes=BATCH_BYTES)
    return BatchBuilder(
        max_bytes=BATCH_BYTES,
        producer_id=producer[0],
        producer_epoch=producer[1],
        base_sequence=0,
        is_transactional=True,
    )


def _add_partitions(transactions: Logs, found: dict[int, Found], partitions: int) -> None:
    """Add the new partitions of pending offsets to their transactions. Pending offsets without a transaction are taken
    out of `found`."""
    wanted: dict[int, set[TopicPartition]] = {}
    for here in found.values():
        for producer, records in here.open.items():
            targets = {partition_of(name_of(key) or "", partitions) for key in living(records)}
            wanted.setdefault(producer[0], set()).update((GROUP_OFFSETS, target) for target in targets)
    known: set[int] = set()
    for log in transactions.values() if wanted else ():
        for key, last in living(find(log, lambda _: True).decided).items():
            snapshot = _snapshot(last)
            if snapshot is None or snapshot.producer_id not in wanted or snapshot.state not in UNDECIDED:
                continue
            known.add(snapshot.producer_id)
            partitions_of = snapshot.partitions | wanted[snapshot.producer_id]
            if partitions_of != snapshot.partitions:
                value = encode_snapshot(replace(snapshot, partitions=partitions_of), _version(last))
                _append(log, [(key, Last(value, last.timestamp))])
        log.flush()
    for here in found.values():
        for producer in [each for each in here.open if each[0] not in known]:
            del here.open[producer]


def _snapshot(last: Last) -> Snapshot | None:
    """None if the record cannot be read; the loader will skip it, too."""
    try:
        return None if last.value is None else decode_snapshot(last.value)
    except (ValueError, Flaw, UnsupportedVersionError):
        return None


def _version(last: Last) -> int:
    return PLAIN if last.value is None else int.from_bytes(last.value[:PREFIX_SIZE])
