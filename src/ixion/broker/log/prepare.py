"""The input and the result of an append, and the checks that need no log.

On a leader, batches come from a client with offsets from 0. They get their offsets and the leader epoch here, and on a
topic with LogAppendTime their timestamp. Offset and epoch are in the first 16 bytes of a batch, outside its CRC, so a
batch is usually written as two pieces without a copy: a new head, and the rest as the client sent it.

On a follower, batches come from the leader and are appended unchanged; the last one may be incomplete.
"""

# This module is compiled: see setup.py.

from __future__ import annotations

import struct
from enum import IntEnum
from typing import Final

from ixion._native import i64
from ixion.broker.log.config import LogConfig
from ixion.broker.log.files import Part
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.records.batch import CREATE_TIME, LOG_APPEND_TIME, BatchView
from ixion.language.records.batches import iter_batches
from ixion.language.records.compression import Codec
from ixion.language.records.layout import BATCH_LENGTH, LEADER_EPOCH, LOG_OVERHEAD, MIN_BATCH_LENGTH, Buffer
from ixion.language.records.patch import patch_max_timestamp
from ixion.language.records.recode import recode
from ixion.language.records.validate import TopicRules, Validated, validate_produce

_pack_head = struct.Struct(">qii").pack
_HEAD: Final = LEADER_EPOCH + 4
_unpack_length = struct.Struct(">i").unpack_from


class Origin(IntEnum):
    """The source of an append: a client (all checks), a coordinator of this broker, or replication."""

    CLIENT = 0
    COORDINATOR = 1
    REPLICATION = 2
    RAISED_MARKER = 3  # a coordinator whose marker has a raised epoch: transaction.version 2
    WHOLE_CHANGE = 4  # an atomic change of a coordinator: only segment.bytes limits its size
    DELIVERY = 5  # records that waited: they were accepted before, under the limits of that time


class AppendInfo:
    """The result of an append. Offsets are inclusive; -1 if nothing was written or the field does not apply."""

    __slots__ = (
        "append_time",
        "duplicate",
        "first_offset",
        "flush_due",
        "last_offset",
        "log_start_offset",
        "max_timestamp",
        "records",
        "rolled",
        "size",
    )

    def __init__(self, first_offset: int, last_offset: int, log_start_offset: int) -> None:
        self.first_offset = first_offset
        self.last_offset = last_offset
        self.log_start_offset = log_start_offset
        self.max_timestamp = -1
        self.append_time = -1  # the broker's clock, on topics with LogAppendTime
        self.records = 0
        self.size = 0
        self.duplicate = False  # the batch is in the log already, at these offsets
        self.rolled = False  # a segment was sealed and should be flushed
        self.flush_due = False  # flush.messages is reached: call `flush` before acknowledging

    def add(self, later: AppendInfo) -> None:
        """Makes this the result of two appends, one after the other."""
        self.last_offset = later.last_offset
        self.max_timestamp = max(self.max_timestamp, later.max_timestamp)
        self.records += later.records
        self.size += later.size
        self.rolled = self.rolled or later.rolled
        self.flush_due = self.flush_due or later.flush_due


def topic_rules(config: LogConfig) -> TopicRules:
    name = config.compression_type
    codec = None
    if name != "producer":
        codec = Codec.NONE if name == "uncompressed" else Codec[name.upper()]
    levels = {
        Codec.GZIP: config.compression_gzip_level,
        Codec.LZ4: config.compression_lz4_level,
        Codec.ZSTD: config.compression_zstd_level,
    }
    return TopicRules(
        max_batch_bytes=config.max_message_bytes,
        compacted=config.compact,
        timestamp_type=LOG_APPEND_TIME if config.message_timestamp_type == "LogAppendTime" else CREATE_TIME,
        timestamp_before_max_ms=config.message_timestamp_before_max_ms,
        timestamp_after_max_ms=config.message_timestamp_after_max_ms,
        codec=codec,
        level=None if codec is None else levels.get(codec),
        max_delay_ms=config.delivery_delay_max_ms if config.delays_records else -1,
        has_target=config.delays_records and len(config.delivery_delay_target) > 0,
    )


class Prepared:
    """Batches ready to write: views to read their fields from, and the pieces to write."""

    __slots__ = ("first_offset", "last_offset", "parts", "size", "views")

    def __init__(self) -> None:
        self.views: list[BatchView] = []
        self.parts: list[Part] = []
        self.size = 0
        self.first_offset = -1
        self.last_offset = -1


def prepare_leader(
    records: Buffer,
    rules: TopicRules,
    origin: Origin,
    first_offset: int,
    leader_epoch: int,
    now_ms: int,
    stored: BatchView | None = None,
) -> Prepared:
    """Checks the batches and gives them their offsets. If one is refused, none is written.

    `stored` is the batch if it was checked before.
    """
    if stored is not None:
        views = [stored]
    elif origin == Origin.CLIENT:
        views = [as_stored(validate_produce(records, rules, now_ms), records, rules)]
    else:
        views = list(iter_batches(records))
        for view in views:
            _check_trusted(view, rules, origin)
    return place(views, rules, first_offset, leader_epoch, now_ms)


def place(views: list[BatchView], rules: TopicRules, first_offset: int, leader_epoch: int, now_ms: int) -> Prepared:
    """Gives checked batches their offsets and the leader epoch."""
    prepared = Prepared()
    offset = first_offset
    for view in views:
        if rules.timestamp_type == LOG_APPEND_TIME and not view.is_control:
            patched = bytearray(view.as_view())
            patch_max_timestamp(patched, 0, LOG_APPEND_TIME, now_ms)
            view = BatchView(bytes(patched), 0)
        size = int(view.size_in_bytes)
        prepared.parts.append(_pack_head(offset, size - LOG_OVERHEAD, leader_epoch))
        prepared.parts.append(memoryview(view.buffer)[view.position + _HEAD : view.position + size])
        prepared.views.append(view)
        prepared.size += size
        offset += int(view.last_offset_delta) + 1
    prepared.first_offset = first_offset
    prepared.last_offset = offset - 1
    return prepared


def as_stored(checked: Validated, records: Buffer, rules: TopicRules) -> BatchView:
    """The client's batch; rebuilt if the topic has another codec or the batch has a wrong max timestamp."""
    if checked.in_place and (checked.max_timestamp_is_true or rules.timestamp_type == LOG_APPEND_TIME):
        return checked.batch
    if checked.in_place:
        made = bytearray(records)
    else:
        assert rules.codec is not None
        made = recode(checked.batch, rules.codec, rules.level)
        if len(made) > rules.max_batch_bytes:
            raise KafkaError(
                ErrorCode.MESSAGE_TOO_LARGE,
                f"the batch has {len(made)} bytes as {rules.codec.name}; {rules.max_batch_bytes} are allowed",
            )
    if not checked.max_timestamp_is_true and rules.timestamp_type == CREATE_TIME:
        patch_max_timestamp(made, 0, CREATE_TIME, checked.max_timestamp)
    return BatchView(bytes(made), 0)


def _check_trusted(view: BatchView, rules: TopicRules, origin: Origin) -> None:
    """Checks size and CRC of a coordinator's batch, which may be a control batch."""
    if view.size_in_bytes > rules.max_batch_bytes and origin not in (Origin.WHOLE_CHANGE, Origin.DELIVERY):
        raise KafkaError(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"the batch has {view.size_in_bytes} bytes; {rules.max_batch_bytes} are allowed",
        )
    if not view.crc_is_valid():
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, "the CRC of a batch does not match its bytes")


def prepare_follower(records: Buffer, expected: int) -> Prepared:
    """Takes the complete batches unchanged; each must have a valid CRC and begin after the one before."""
    prepared = Prepared()
    position: i64 = 0
    end: i64 = len(records)
    last = expected - 1
    while end - position >= LOG_OVERHEAD + MIN_BATCH_LENGTH:
        length: i64 = _unpack_length(records, position + BATCH_LENGTH)[0]
        if length >= MIN_BATCH_LENGTH and position + LOG_OVERHEAD + length > end:
            break  # the leader's response ends inside a batch; the next fetch gets it
        view = BatchView(records, position)
        if not view.crc_is_valid():
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"the CRC of the batch at offset {view.base_offset} is wrong")
        base = int(view.base_offset)
        if base <= last or view.last_offset_delta < 0:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE, f"a batch begins at offset {base}; expected {last + 1} or later"
            )
        last = int(view.last_offset)
        prepared.views.append(view)
        position += view.size_in_bytes
    if prepared.views:
        prepared.parts.append(memoryview(records)[:position])
        prepared.size = int(position)
        prepared.first_offset = int(prepared.views[0].base_offset)
        prepared.last_offset = last
    return prepared


def split_to_fit(prepared: Prepared, most: int) -> list[Prepared]:
    """Parts of at most `most` bytes of the batches for a follower. A larger batch is a part of its own."""
    if prepared.size <= most:
        return [prepared]
    parts: list[Prepared] = []
    data = memoryview(prepared.parts[0])
    position = 0
    for view in prepared.views:
        size = int(view.size_in_bytes)
        if not parts or parts[-1].size + size > most:
            part = Prepared()
            part.first_offset = int(view.base_offset)
            parts.append(part)
        part = parts[-1]
        part.views.append(view)
        part.parts.append(data[position : position + size])
        part.size += size
        part.last_offset = int(view.last_offset)
        position += size
    return parts
