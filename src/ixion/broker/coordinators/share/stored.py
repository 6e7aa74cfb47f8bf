"""What is stored of a share partition, and the records of `__share_group_state` that hold it, in Kafka's format.

    snapshot     the whole state; the first record of a share partition, and then after every 500 updates
    update       what has changed since
    tombstone    of the snapshot's key: the share partition is deleted

The topic is not compacted. Everything before the oldest last snapshot of all share partitions of a partition is deleted
(`pruning`). Epochs and start are part of every record.
"""

from __future__ import annotations

from collections.abc import Iterable
from struct import Struct
from typing import Final

from ixion.broker.coordinators.share.runs import Runs
from ixion.broker.replica.share_persister import NO_COUNT, SharePartitionKey, ShareState, StateBatch, StateUpdate
from ixion.language.protocol.flaws import UnsupportedVersionError
from ixion.language.protocol.storage import decode, decode_key, encode, encode_key, record_type
from ixion.language.protocol.stored import share_state as table
from ixion.language.records.record import Record
from ixion.timer.turns import Steps

SNAPSHOT: Final = 0  # types of keys
UPDATE: Final = 1

BATCHES_AT: Final = 38  # where a snapshot without batches has their count: behind version, three epochs, three int64
UPDATED_AT: Final = 18  # the same of an update: behind version, two epochs, one int64
EMPTY: Final = 1  # a compact array has one more than its length in front
_PLAIN: Final = Struct(">qqbhB").pack
_WITH_DUE: Final = Struct(">qqbh4sq").pack
_BATCH: Final = Struct(">qqbh").unpack_from
_DUE: Final = Struct(">q").unpack_from
BATCH_BYTES: Final = 19  # without its tagged fields
LARGE_BYTES: Final = 20_000  # of a snapshot that is restored in steps; up to here it takes 3 ms
AT_ONCE: Final = 200  # batches in one step; some 500 µs
_DUE_TAG: Final = b"\x01\x88\x27\x08"  # one tagged field, 5000, of eight bytes

Entry = tuple[bytes, bytes | None]
States = dict[SharePartitionKey, "Stored"]


class Stored:
    """The state of one share partition."""

    __slots__ = (
        "complete_count",
        "created_ms",
        "leader_epoch",
        "runs",
        "snapshot_epoch",
        "snapshot_offset",
        "start_offset",
        "state_epoch",
        "updates",
        "written_ms",
    )

    def __init__(self, *, snapshot_epoch: int, state_epoch: int, leader_epoch: int, start_offset: int) -> None:
        self.snapshot_epoch = snapshot_epoch  # counts the snapshots
        self.state_epoch = state_epoch
        self.leader_epoch = leader_epoch  # the highest that was seen
        self.start_offset = start_offset
        self.complete_count = NO_COUNT
        self.created_ms = 0
        self.written_ms = 0  # of the last snapshot
        self.runs = Runs()
        self.updates = 0  # since the last snapshot
        self.snapshot_offset = -1  # of the last snapshot in the log; -1: it is being written

    def apply(self, update: StateUpdate) -> None:
        self.leader_epoch = max(self.leader_epoch, update.leader_epoch)
        if update.start_offset > self.start_offset:  # only `initialize` moves it back
            self.start_offset = update.start_offset
            self.runs.drop_before(update.start_offset)
        self.complete_count = update.delivery_complete_count
        for batch in update.batches:
            self.runs.apply(batch, self.start_offset)
        self.updates += 1

    def seen(self) -> ShareState:
        """As its leader sees it."""
        return ShareState(state_epoch=self.state_epoch, start_offset=self.start_offset, batches=tuple(self.runs))


def snapshot_record(key: SharePartitionKey, state: Stored) -> Entry:
    value = table.ShareSnapshotValue(
        snapshot_epoch=state.snapshot_epoch,
        state_epoch=state.state_epoch,
        leader_epoch=state.leader_epoch,
        start_offset=state.start_offset,
        delivery_complete_count=state.complete_count,
        create_timestamp=state.created_ms,
        write_timestamp=state.written_ms,
        state_batches=(),
    )
    return snapshot_key(key), _with_batches(encode(value, 0), BATCHES_AT, len(state.runs), state.runs.rows())


def update_record(key: SharePartitionKey, snapshot_epoch: int, update: StateUpdate) -> Entry:
    value = table.ShareUpdateValue(
        snapshot_epoch=snapshot_epoch,
        leader_epoch=update.leader_epoch,
        start_offset=update.start_offset,
        delivery_complete_count=update.delivery_complete_count,
        state_batches=(),
    )
    named = table.ShareUpdateKey(group_id=key.group, topic_id=key.topic_id, partition=key.partition)
    return encode_key(UPDATE, named), _with_batches(encode(value, 0), UPDATED_AT, len(update.batches), update.batches)


def tombstone(key: SharePartitionKey) -> Entry:
    return snapshot_key(key), None


def snapshot_key(key: SharePartitionKey) -> bytes:
    named = table.ShareSnapshotKey(group_id=key.group, topic_id=key.topic_id, partition=key.partition)
    return encode_key(SNAPSHOT, named)


def replay(record: Record, states: States) -> Steps[None] | None:
    """Apply a record of the log. Raises, and changes nothing, if it cannot be read. A large one is applied by the steps
    that are returned, in the last of them."""
    data = record.key
    number = record_type(b"" if data is None else data)
    assert data is not None
    if number == SNAPSHOT:
        named = decode_key(table.ShareSnapshotKey, data)
        key = SharePartitionKey(named.group_id, named.topic_id, named.partition)
        if record.value is None:
            states.pop(key, None)
        elif len(record.value) > LARGE_BYTES:
            return _restore_large(key, bytes(record.value), int(record.offset), states)
        else:
            states[key] = _restored(decode(table.ShareSnapshotValue, record.value), int(record.offset))
    elif number == UPDATE:
        of = decode_key(table.ShareUpdateKey, data)
        known = states.get(SharePartitionKey(of.group_id, of.topic_id, of.partition))
        if record.value is not None and known is not None:  # without a snapshot it was deleted
            known.apply(_update_of(decode(table.ShareUpdateValue, record.value)))
    else:
        raise UnsupportedVersionError("record key", number)
    return None


def _restore_large(key: SharePartitionKey, data: bytes, offset: int, states: States) -> Steps[None]:
    """As `_restored`, in steps. 100,000 runs take 0.3 s."""
    state = _restored(_without_batches(data, b"\0"), offset)
    runs, start = state.runs, state.start_offset
    count, at = _uvarint_at(data, BATCHES_AT)
    for number in range(1, count):
        first, last, kind, deliveries = _BATCH(data, at)
        at += BATCH_BYTES
        due_ms = 0
        if data[at] == 0:
            at += 1
        elif data[at : at + len(_DUE_TAG)] == _DUE_TAG:
            (due_ms,) = _DUE(data, at + len(_DUE_TAG))
            at += len(_DUE_TAG) + 8
        else:  # tagged fields that are not ours
            states[key] = _restored(decode(table.ShareSnapshotValue, data), offset)
            return
        runs.apply(StateBatch(first, last, kind, deliveries, due_ms), start)
        if number % AT_ONCE == 0:
            yield
    state.complete_count = _without_batches(data, data[at:]).delivery_complete_count  # a tagged field at the end
    states[key] = state


def _restored(value: table.ShareSnapshotValue, offset: int) -> Stored:
    state = Stored(
        snapshot_epoch=value.snapshot_epoch,
        state_epoch=value.state_epoch,
        leader_epoch=value.leader_epoch,
        start_offset=value.start_offset,
    )
    state.complete_count = value.delivery_complete_count
    state.created_ms, state.written_ms = value.create_timestamp, value.write_timestamp
    state.snapshot_offset = offset
    for batch in value.state_batches:
        state.runs.apply(_batch_of(batch), value.start_offset)
    return state


def _update_of(value: table.ShareUpdateValue) -> StateUpdate:
    return StateUpdate(
        state_epoch=-1,
        leader_epoch=value.leader_epoch,
        start_offset=value.start_offset,
        delivery_complete_count=value.delivery_complete_count,
        batches=tuple(map(_batch_of, value.state_batches)),
    )


def _batch_of(batch: table.StateBatch) -> StateBatch:
    return StateBatch(batch.first_offset, batch.last_offset, batch.delivery_state, batch.delivery_count, batch.due_ms)


def _with_batches(data: bytes, at: int, count: int, rows: Iterable[tuple[int, int, int, int, int]]) -> bytes:
    """The batches as a compact array, each with its tagged fields, in place of the empty one. The codec takes 16 µs for
    each batch, so they are packed here."""
    assert data[at] == EMPTY
    pieces = [data[:at], _uvarint(count + 1)]
    for first, last, state, deliveries, due_ms in rows:
        if due_ms:
            pieces.append(_WITH_DUE(first, last, state, deliveries, _DUE_TAG, due_ms))
        else:
            pieces.append(_PLAIN(first, last, state, deliveries, 0))
    pieces.append(data[at + 1 :])
    return b"".join(pieces)


def _without_batches(data: bytes, tail: bytes) -> table.ShareSnapshotValue:
    return decode(table.ShareSnapshotValue, b"".join((data[:BATCHES_AT], bytes([EMPTY]), tail)))


def _uvarint_at(data: bytes, at: int) -> tuple[int, int]:
    """A number, and where it ends."""
    value = shift = 0
    while True:
        value |= (data[at] & 0x7F) << shift
        at += 1
        if data[at - 1] < 0x80:
            return value, at
        shift += 7


def _uvarint(value: int) -> bytes:
    found = bytearray()
    while value > 0x7F:
        found.append(value & 0x7F | 0x80)
        value >>= 7
    found.append(value)
    return bytes(found)
