"""Decides whether a client's batch may enter a log, in one pass over it.

`validate_produce` takes the record bytes of one partition of a produce request and the rules of its topic. It makes the
checks of Apache Kafka, in this order, with Kafka's error codes; K is our own:

A  exactly one batch, complete, magic 2                  INVALID_RECORD, CORRUPT_MESSAGE, or by name for old magics
B  at most `max_batch_bytes`                             MESSAGE_TOO_LARGE
C  the CRC                                               CORRUPT_MESSAGE
D  a codec that exists, no unknown attribute bits        UNSUPPORTED_COMPRESSION_TYPE, INVALID_RECORD
E  base offset 0; count = last offset delta + 1 > 0      INVALID_RECORD
F  no control batch; a sequence if there is a producer   INVALID_RECORD
G  every record well-formed, nothing after the last      INVALID_RECORD
H  offset deltas 0, 1, 2 …                               INVALID_RECORD, one error per record
I  a key where the topic is compacted                    INVALID_RECORD, one error per record
J  create times within the topic's limits                INVALID_TIMESTAMP, one error per record
K  delivery headers, if the topic allows delays          INVALID_RECORD, one error per record

Errors of H to K are collected (up to 100), so that the producer learns which of its records were refused (KIP-467). An
error of A to G ends the validation at once.
Compressed records are inflated and walked piece by piece: this takes the memory of one piece (256 kB) and the largest
record, not of the batch. We are stricter than Kafka on purpose: we refuse a batch that claims log append time,
attribute bits that no version of Kafka defines, and offset deltas with gaps. Kafka accepts or rewrites some of these.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from time import sleep
from typing import Final, NamedTuple, final

from ixion._native import i64, mypyc_attr
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.records.batch import CREATE_TIME, BatchView, TimestampType
from ixion.language.records.compression import (
    CODECS,
    DEFAULT_LIMITS,
    Codec,
    InflateLimits,
    inflate_chunks,
    no_such_codec,
)
from ixion.language.records.faults import LongWorkError, corrupt, invalid, too_large
from ixion.language.records.layout import (
    CODEC_MASK,
    DELETE_HORIZON_BIT,
    KNOWN_ATTRIBUTES,
    LOG_APPEND_TIME_BIT,
    MIN_RECORD_SIZE,
    NO_TIMESTAMP,
    RECORDS,
    Buffer,
)
from ixion.language.records.record import Record
from ixion.language.records.schedule_headers import Wish, begin, read_wish
from ixion.language.records.walker import BREATH, FAR, MAX_I64, Walker

# The pass ends after this many refused records, to bound the work and the size of the response.
MAX_RECORD_ERRORS: Final = 100
# Per batch: parsing a cron expression takes 100 µs.
MAX_RECURRING: Final = 100


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class TopicRules:
    """The topic settings that a batch must obey; times in milliseconds."""

    max_batch_bytes: int = 1024 * 1024 + 12
    compacted: bool = False
    timestamp_type: TimestampType = CREATE_TIME
    # How far a create time may lie behind or ahead of the broker's clock.
    timestamp_before_max_ms: int = MAX_I64
    timestamp_after_max_ms: int = 3_600_000
    # None keeps the producer's codec.
    codec: Codec | None = None
    # The compression level; None if the codec has no levels, or for its default.
    level: int | None = None
    # The longest delay that a record may ask for; -1 if the topic ignores delivery headers.
    max_delay_ms: int = -1
    # Whether delayed records are delivered to another topic.
    has_target: bool = False


class RecordError(NamedTuple):
    """One refused record: its index in the batch, and why."""

    batch_index: int
    message: str


class InvalidRecords(KafkaError):  # noqa: N818  named for what it carries
    """A batch refused because of some of its records."""

    def __init__(self, code: ErrorCode, message: str, record_errors: tuple[RecordError, ...]) -> None:
        super().__init__(code, message)
        self.record_errors = record_errors


def why_refused(errors: Sequence[RecordError]) -> str:
    """The message of a batch with these errors."""
    first = errors[0]
    if len(errors) == 1:
        return f"record {first.batch_index} of the batch was refused: {first.message}"
    return f"{len(errors)} records refused; the first is number {first.batch_index}: {first.message}"


@final
@mypyc_attr(acyclic=True)
class Validated:
    """A validated batch, with the facts that the log needs to append it."""

    def __init__(self, batch: BatchView, rules: TopicRules) -> None:
        self.batch = batch
        self.count: i64 = batch.count
        self.last_offset_delta: i64 = batch.last_offset_delta
        self.max_timestamp: i64 = NO_TIMESTAMP  # the latest create time; -1 if no record has a timestamp
        self.size_in_bytes: i64 = batch.size_in_bytes  # as sent
        # False: the topic has another codec, so the batch must be recoded before the append.
        self.in_place = rules.codec is None or rules.codec is batch.codec
        # The delivery headers of the records, in order; empty if the topic ignores them.
        self.wishes: list[Wish] = []
        # If they were taken out already: the batch without the records to deliver later, and these.
        self.split: tuple[bytes, list[Record]] | None = None
        self.keyless: list[int] = []  # records without a key, if a target may need keys

    @property
    def max_timestamp_is_true(self) -> bool:
        """Whether the header has the true max timestamp; if not, the log patches it, as Kafka does."""
        return self.batch.max_timestamp == self.max_timestamp


def validate_produce(
    buffer: Buffer, rules: TopicRules, now_ms: int, limits: InflateLimits = DEFAULT_LIMITS, allowed: i64 = FAR
) -> Validated:
    """The one batch in `buffer` if it obeys the rules; KafkaError or InvalidRecords if not. Changes nothing.

    LongWorkError if it has more than `allowed` records and headers.
    """
    batch = only_batch(buffer)
    if batch.size_in_bytes > rules.max_batch_bytes:
        raise too_large(f"a batch of {batch.size_in_bytes} bytes; the topic allows {rules.max_batch_bytes}")
    if not batch.crc_is_valid():
        raise corrupt(f"the CRC of a batch does not match its header, {batch.crc:#010x}")
    check_header(batch)
    pass_over = Pass(batch, rules, now_ms, allowed)
    if batch.codec_id == 0:
        walker = batch.walker()
        pass_over.walk(walker)
        pass_over.finish(walker.end - walker.position)
    else:
        walk_compressed(batch, pass_over, limits)
    return pass_over.result


def only_batch(buffer: Buffer) -> BatchView:
    """Case A."""
    if len(buffer) == 0:
        raise invalid("a produce request must hold one record batch per partition, this one holds none")
    batch = BatchView(buffer)
    if not batch.is_complete:
        raise corrupt(f"a batch claims {batch.size_in_bytes} bytes; only {len(buffer)} were sent")
    if batch.size_in_bytes < len(buffer):
        raise invalid(
            "a produce request must hold exactly one record batch per partition,"
            f" {len(buffer) - batch.size_in_bytes} bytes follow it"
        )
    return batch


def check_header(batch: BatchView) -> None:
    """Cases D to F, which need only the header."""
    attributes = batch.attributes
    codec_id = attributes & CODEC_MASK
    if codec_id >= len(CODECS):
        raise no_such_codec(codec_id)
    if attributes & ~KNOWN_ATTRIBUTES or attributes & DELETE_HORIZON_BIT:
        raise invalid(f"attributes {attributes:#06x} have bits that a producer must not set")
    if attributes & LOG_APPEND_TIME_BIT:
        raise KafkaError(ErrorCode.INVALID_TIMESTAMP, "a producer must not set the timestamp type to LogAppendTime")
    count = batch.count
    if batch.base_offset != 0:
        raise invalid(f"the base offset of a produced batch must be 0, not {batch.base_offset}")
    if count <= 0:
        raise invalid(f"a batch of {count} records")
    if batch.last_offset_delta != count - 1:
        raise invalid(f"a batch of {count} records must end at offset delta {count - 1}, not {batch.last_offset_delta}")
    if codec_id == 0 and count > (batch.size_in_bytes - RECORDS) // MIN_RECORD_SIZE:
        raise invalid(f"a batch claims {count} records in {batch.size_in_bytes - RECORDS} bytes")
    if batch.is_control:
        raise invalid("clients are not allowed to write control records")
    if batch.producer_id >= 0 and (batch.base_sequence < 0 or batch.producer_epoch < 0):
        raise invalid(
            f"producer {batch.producer_id} sent the sequence {batch.base_sequence} in epoch {batch.producer_epoch}"
        )
    if batch.is_transactional and batch.producer_id < 0:
        raise invalid("a transactional batch without a producer id")


def walk_compressed(batch: BatchView, pass_over: Pass, limits: InflateLimits) -> None:
    """Walk the whole records of each inflated piece; carry the rest over into the next piece."""
    bound: i64 = limits.bound(batch.size_in_bytes - RECORDS)
    held: list[bytes] = []
    held_size: i64 = 0
    wanted: i64 = 0
    rest: i64 = 0
    for chunk in inflate_chunks(batch.codec, batch.payload(), limits):
        held.append(chunk)
        held_size += len(chunk)
        # Join pieces only when the cut record is whole: joining at every piece would copy a large record many times.
        if held_size < wanted:
            continue
        data = held[0] if len(held) == 1 else b"".join(held)
        walker = Walker(data, 0, len(data))
        pass_over.walk(walker)
        rest = walker.end - walker.position
        held = [data[walker.position :]] if rest > 0 else []
        held_size = rest
        wanted = rest + walker.missing()
        if rest > 0 and pass_over.is_over:
            break
        if wanted > bound:
            raise too_large(f"a record of more than {wanted} bytes in a batch that may inflate to {bound}")
    pass_over.finish(held_size)


@final
@mypyc_attr(acyclic=True)
class Pass:
    """The state of one pass over the records of a batch: cases G to K."""

    def __init__(self, batch: BatchView, rules: TopicRules, now_ms: int, allowed: i64 = FAR) -> None:
        self.result = Validated(batch, rules)
        self._allowed: i64 = allowed
        self._left: i64 = batch.count
        self._index: i64 = 0
        self._base_timestamp: i64 = batch.base_timestamp
        self._needs_key = rules.compacted
        self._notes_keyless = rules.compacted or rules.has_target
        self._checks_time = rules.timestamp_type is CREATE_TIME
        self._earliest: i64 = now_ms - rules.timestamp_before_max_ms
        self._latest: i64 = min(now_ms + rules.timestamp_after_max_ms, MAX_I64)
        self._errors: list[RecordError] = []
        self._bad_time = False
        self._reads_wishes = rules.max_delay_ms >= 0
        self._max_delay_ms = rules.max_delay_ms
        self._now_ms = now_ms
        self._recurring: i64 = 0

    @property
    def is_over(self) -> bool:
        return self._left == 0

    def walk(self, walker: Walker) -> None:
        """Step over the records that are whole in the walker's bytes."""
        result = self.result
        base: i64 = self._base_timestamp
        max_timestamp: i64 = result.max_timestamp
        walker.allowed = self._allowed
        while self._left > 0 and walker.missing() == 0:
            walker.allowed -= 1
            if walker.allowed < 0:
                raise LongWorkError
            if self._left & BREATH == BREATH:
                sleep(0)
            walker.step()
            if walker.offset_delta != self._index:
                self._refuse(f"offset delta {walker.offset_delta} instead of {self._index}")
            if walker.key_size < 0 and self._notes_keyless:
                if self._needs_key:
                    self._refuse("a record of a compacted topic must have a key")
                else:
                    result.keyless.append(self._index)
            timestamp = walker.timestamp(base)
            if timestamp > max_timestamp:
                max_timestamp = timestamp
            if (
                self._checks_time
                and (timestamp < self._earliest or timestamp > self._latest)
                and timestamp != NO_TIMESTAMP
            ):
                self._bad_time = True
                self._refuse(f"timestamp {timestamp} is outside {self._earliest} .. {self._latest}")
            if self._reads_wishes and walker.header_count > 0:
                self._read_wish(walker)
            self._index += 1
            self._left -= 1
        self._allowed = walker.allowed
        result.max_timestamp = max_timestamp

    def _read_wish(self, walker: Walker) -> None:
        wish = read_wish(walker, self._index, self._now_ms, self._max_delay_ms)
        if wish is not None:
            if wish.recurs and not wish.refusal:
                self._recurring += 1
                if self._recurring > MAX_RECURRING:
                    wish.refusal = f"a batch may have at most {MAX_RECURRING} recurring records"
                else:
                    begin(wish, self._now_ms, self._max_delay_ms)
            if wish.refusal:
                self._refuse(wish.refusal)
            self.result.wishes.append(wish)

    def finish(self, rest: i64) -> None:
        """Close the pass with `rest` bytes not walked over."""
        if self._left > 0:
            raise invalid(f"a batch claims {self.result.count} records but has {self._index} and {rest} more bytes")
        if rest > 0:
            raise invalid(f"{rest} bytes follow the last record of a batch")
        if self._errors:
            raise self._refusal()

    def _refuse(self, message: str) -> None:
        self._errors.append(RecordError(batch_index=self._index, message=message))
        if len(self._errors) == MAX_RECORD_ERRORS:
            raise self._refusal()

    def _refusal(self) -> InvalidRecords:
        code = ErrorCode.INVALID_TIMESTAMP if self._bad_time else ErrorCode.INVALID_RECORD
        return InvalidRecords(code, why_refused(self._errors), tuple(self._errors))
