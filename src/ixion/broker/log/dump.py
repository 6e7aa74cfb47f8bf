"""Shows any file of a log directory in readable form, one dictionary per entry.

`dump_path` recognises a file by its name: segments (batches, with `deep` their records), the three indexes, producer
snapshots, checkpoints, meta.properties, partition.metadata. A folder is dumped file by file. A damaged file is shown up
to the damage, followed by an entry `damaged` with the reason.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

from ixion.broker.log import checkpoint, meta_properties, partition_metadata
from ixion.broker.log.corrupt import CorruptFileError
from ixion.broker.log.files import Files
from ixion.broker.log.handle import Handle
from ixion.broker.log.names import CLEANED, DELETED, INDEX, LOG, SNAPSHOT, SWAP, TIME_INDEX, TXN_INDEX, parse_file_name
from ixion.broker.log.offset_index import ENTRY_SIZE as OFFSET_ENTRY
from ixion.broker.log.offset_index import OffsetIndex
from ixion.broker.log.scan import Scan
from ixion.broker.log.snapshot_file import read_snapshot
from ixion.broker.log.time_index import ENTRY_SIZE as TIME_ENTRY
from ixion.broker.log.time_index import TimeIndex
from ixion.broker.log.txn_index import read_aborted
from ixion.language.model.errors import KafkaError
from ixion.language.model.ids import id_text
from ixion.language.records.batch import BatchView
from ixion.language.records.control import control_type

Found = dict[str, Any]
FILES = Files()

_CHECKPOINTS = (
    checkpoint.RECOVERY_POINTS,
    checkpoint.HIGH_WATERMARKS,
    checkpoint.LOG_STARTS,
    checkpoint.CLEANER_OFFSETS,
)


def dump_path(path: str, deep: bool = False) -> Iterator[Found]:
    """The entries of a file, or of every known file in a folder and in the partition folders below it."""
    if os.path.isdir(path):
        for name in sorted(os.listdir(path)):
            inner = os.path.join(path, name)
            if os.path.isdir(inner) or _is_known(name):
                yield from dump_path(inner, deep)
        return
    yield {"file": path, "bytes": os.path.getsize(path)}
    try:
        yield from _dump_file(path, deep)
    except (CorruptFileError, KafkaError) as error:
        yield {"damaged": str(error)}


def _is_known(name: str) -> bool:
    return (
        parse_file_name(name) is not None
        or name in _CHECKPOINTS
        or name in (checkpoint.LEADER_EPOCHS, meta_properties.FILE_NAME, partition_metadata.FILE_NAME)
    )


def _dump_file(path: str, deep: bool) -> Iterator[Found]:
    name = os.path.basename(path)
    parsed = parse_file_name(name)
    if parsed is not None:
        base_offset, suffix = parsed
        for mark in (DELETED, CLEANED, SWAP):
            suffix = suffix.removesuffix(mark)
        if suffix == LOG:
            yield from _dump_segment(path, deep)
        elif suffix == INDEX:
            index = OffsetIndex(Files(), path, base_offset, _whole(path, OFFSET_ENTRY))
            for offset, position in index.entries():
                yield {"offset": offset, "position": position}
        elif suffix == TIME_INDEX:
            times = TimeIndex(Files(), path, base_offset, _whole(path, TIME_ENTRY))
            for timestamp, offset in times.entries():
                yield {"timestamp": timestamp, "offset": offset}
        elif suffix == TXN_INDEX:
            for txn in read_aborted(path, base_offset):
                producer_id, first, last, stable = txn.fields()
                yield {"producer": producer_id, "first": first, "last": last, "last stable": stable}
        elif suffix == SNAPSHOT:
            yield from _dump_snapshot(path)
        else:
            raise CorruptFileError(path, f"unknown suffix {suffix}")
    elif name in _CHECKPOINTS:
        for (topic, partition), offset in checkpoint.read_offsets(FILES, path).items():
            yield {"topic": topic, "partition": partition, "offset": offset}
    elif name == checkpoint.LEADER_EPOCHS:
        for epoch, start in checkpoint.read_epochs(FILES, path):
            yield {"epoch": epoch, "start": start}
    elif name == partition_metadata.FILE_NAME:
        topic_id = partition_metadata.read_topic_id(FILES, path)
        yield {"topic id": None if topic_id is None else id_text(topic_id)}
    elif name == meta_properties.FILE_NAME:
        meta = meta_properties.read_meta_properties(path)
        assert meta is not None
        yield {
            "version": meta.version,
            "cluster": meta.cluster_id,
            "node": meta.node_id,
            "directory": meta.directory_id,
        }
    else:
        raise CorruptFileError(path, "this is not the name of a file in a log directory")


def _whole(path: str, entry_size: int) -> int:
    size = os.path.getsize(path)
    if size % entry_size:
        raise CorruptFileError(path, f"{size} bytes are not a multiple of {entry_size}")
    return size


def _dump_segment(path: str, deep: bool) -> Iterator[Found]:
    files = Files()
    handle = Handle(files, files.open_to_read(path))
    size = os.fstat(handle.fd).st_size
    scan = Scan(handle, 0, size)
    while scan.step():
        view = BatchView(handle.read(int(scan.size), int(scan.position)), 0)
        yield _batch(view, int(scan.position))
        if deep:
            yield from _records(view)
    end = int(scan.position + scan.size)
    if end < size:
        raise CorruptFileError(path, f"no batch begins at byte {end}, {size - end} bytes are left")


def _batch(view: BatchView, position: int) -> Found:
    found: Found = {
        "batch": int(view.base_offset),
        "last": int(view.last_offset),
        "records": int(view.count),
        "position": position,
        "bytes": int(view.size_in_bytes),
        "epoch": int(view.leader_epoch),
        "codec": view.codec.name.lower(),
        "timestamp": int(view.max_timestamp),
        "timestamp type": view.timestamp_type.name.lower(),
        "crc": "ok" if view.crc_is_valid() else "wrong",
    }
    if view.producer_id >= 0:
        found |= {
            "producer": int(view.producer_id),
            "producer epoch": int(view.producer_epoch),
            "sequence": int(view.base_sequence),
        }
    if view.is_transactional:
        found["transactional"] = True
    if view.is_control:
        found["control"] = control_type(view).name.lower() if view.count else "empty"
    if view.has_delete_horizon:
        found["delete horizon"] = int(view.base_timestamp)
    return found


def _records(view: BatchView) -> Iterator[Found]:
    for record in view.records():
        found: Found = {
            "offset": int(record.offset),
            "timestamp": int(record.timestamp),
            "key": _text(record.key),
            "value": _text(record.value),
        }
        if record.header_count:
            found["headers"] = {name: _text(value) for name, value in record.headers}
        yield found


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode("utf-8", "backslashreplace")


def _dump_snapshot(path: str) -> Iterator[Found]:
    for entry in read_snapshot(FILES, path):
        yield {
            "producer": entry.producer_id,
            "producer epoch": entry.epoch,
            "sequence": entry.last_sequence,
            "last": entry.last_offset,
            "timestamp": entry.last_timestamp,
            "coordinator epoch": entry.coordinator_epoch,
            "transaction from": entry.txn_first_offset,
        }
