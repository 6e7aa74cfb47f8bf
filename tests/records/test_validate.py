"""What a produce must be refused for, by the letter of `validate`, and what it is let in with."""

from __future__ import annotations

import pytest

from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.records.batch import TimestampType
from ixion.language.records.builder import BatchBuilder
from ixion.language.records.compression import Codec, InflateLimits, compress
from ixion.language.records.control import transaction_marker
from ixion.language.records.layout import Buffer
from ixion.language.records.validate import MAX_RECORD_ERRORS, InvalidRecords, TopicRules, Validated, validate_produce
from tests.records.forge import batch, record, varint

NOW = 1_000_000
RULES = TopicRules(timestamp_before_max_ms=10_000, timestamp_after_max_ms=1_000)
I64_MAX = 2**63 - 1
I64_MIN = -(2**63)


def refused(data: Buffer, rules: TopicRules = RULES, limits: InflateLimits | None = None) -> KafkaError:
    with pytest.raises(KafkaError) as caught:
        validate_produce(data, rules, NOW, limits or InflateLimits())
    return caught.value


def honest(codec: Codec = Codec.NONE, times: tuple[int, ...] = (NOW, NOW + 5, NOW + 5, NOW - 5)) -> bytes:
    builder = BatchBuilder(codec=codec)
    for number, time in enumerate(times):
        builder.append(b"k%d" % number, b"v" * 50, [("h", b"x")], time)
    return builder.build()


@pytest.mark.parametrize("codec", list(Codec))
def test_a_valid_batch_is_accepted(codec: Codec) -> None:
    data = honest(codec)
    result = validate_produce(data, RULES, NOW)
    assert isinstance(result, Validated)
    assert (result.count, result.last_offset_delta, result.size_in_bytes) == (4, 3, len(data))
    assert result.max_timestamp == NOW + 5
    assert result.max_timestamp_is_true
    assert result.in_place


@pytest.mark.parametrize("wrap", [bytearray, memoryview])
def test_any_buffer_will_do(wrap: type[bytearray] | type[memoryview]) -> None:
    assert validate_produce(wrap(honest()), RULES, NOW).count == 4


def test_another_codec_of_the_topic_means_a_new_batch() -> None:
    assert not validate_produce(honest(Codec.GZIP), TopicRules(codec=Codec.LZ4), NOW).in_place
    assert not validate_produce(honest(Codec.GZIP), TopicRules(codec=Codec.NONE), NOW).in_place
    assert validate_produce(honest(Codec.GZIP), TopicRules(codec=Codec.GZIP), NOW).in_place


def test_a_false_max_timestamp_is_seen() -> None:
    data = batch(record(), base_timestamp=NOW, max_timestamp=NOW + 1)
    result = validate_produce(data, RULES, NOW)
    assert not result.max_timestamp_is_true
    assert result.max_timestamp == NOW


# A
def test_no_batch() -> None:
    assert refused(b"").code is ErrorCode.INVALID_RECORD


def test_two_batches() -> None:
    error = refused(honest() + honest())
    assert error.code is ErrorCode.INVALID_RECORD
    assert "exactly one" in str(error)


def test_a_byte_after_the_batch() -> None:
    assert refused(honest() + b"\0").code is ErrorCode.INVALID_RECORD


def test_cut_anywhere() -> None:
    data = honest()
    for end in range(1, len(data)):
        assert refused(data[:end]).code is ErrorCode.CORRUPT_MESSAGE, end


@pytest.mark.parametrize("magic", [0, 1])
def test_old_magic_by_name(magic: int) -> None:
    error = refused(batch(record(), magic=magic))
    assert error.code is ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT
    assert f"magic {magic}" in str(error)
    # An old message set can be shorter than the header of a batch.
    assert refused(batch(b"", magic=magic)[:26]).code is ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT


@pytest.mark.parametrize("magic", [3, 127, -1])
def test_a_magic_of_the_future(magic: int) -> None:
    assert refused(batch(record(), magic=magic)).code is ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize("length", [0, -1, 48, 2**31 - 1, -(2**31)])
def test_a_lying_length(length: int) -> None:
    assert refused(batch(record(), length=length)).code is ErrorCode.CORRUPT_MESSAGE


# B
def test_too_large() -> None:
    data = honest()
    assert validate_produce(data, TopicRules(max_batch_bytes=len(data)), NOW).count == 4
    assert refused(data, TopicRules(max_batch_bytes=len(data) - 1)).code is ErrorCode.MESSAGE_TOO_LARGE


# C
def test_every_flipped_bit_under_the_crc_is_seen() -> None:
    data = honest()
    for position in range(17, len(data)):
        broken = bytearray(data)
        broken[position] ^= 0x10
        assert refused(broken).code is ErrorCode.CORRUPT_MESSAGE, position


# D
@pytest.mark.parametrize("codec_id", [5, 6, 7])
def test_codecs_that_do_not_exist(codec_id: int) -> None:
    error = refused(batch(record(), attributes=codec_id))
    assert error.code is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert f"codec {codec_id}" in str(error)


@pytest.mark.parametrize("attributes", [0x40, 0x80, 0x8000])
def test_bits_a_producer_must_not_set(attributes: int) -> None:
    assert refused(batch(record(), attributes=attributes)).code is ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("kind", list(TimestampType))
def test_log_append_time_is_not_the_producers_to_set(kind: TimestampType) -> None:
    error = refused(batch(record(), attributes=0x08, base_timestamp=NOW), TopicRules(timestamp_type=kind))
    assert error.code is ErrorCode.INVALID_TIMESTAMP


# E
@pytest.mark.parametrize(
    "data",
    [
        batch(record(), base_offset=1, base_timestamp=NOW),
        batch(record(), base_offset=-1, base_timestamp=NOW),
        batch(record(), count=0, last_offset_delta=0, base_timestamp=NOW),
        batch(record(), count=-1, base_timestamp=NOW),
        batch(record(), count=2**31 - 1, base_timestamp=NOW),
        batch(record(), last_offset_delta=1, base_timestamp=NOW),
        batch(record(), last_offset_delta=-1, base_timestamp=NOW),
        batch(record() + record(1), count=2, last_offset_delta=0, base_timestamp=NOW),
        batch(record() + record(1), count=2, last_offset_delta=2, base_timestamp=NOW),
    ],
)
def test_offsets_and_counts_that_do_not_match(data: bytes) -> None:
    assert refused(data).code is ErrorCode.INVALID_RECORD


# F
def test_a_control_batch_from_a_client() -> None:
    marker = transaction_marker(commit=True, producer_id=1, producer_epoch=0, coordinator_epoch=0, timestamp=NOW)
    error = refused(marker)
    assert error.code is ErrorCode.INVALID_RECORD
    assert "control" in str(error)


def test_sequences() -> None:
    def made(**fields: int) -> bytes:
        return batch(record(), base_timestamp=NOW, **fields)

    assert validate_produce(made(producer_id=1, producer_epoch=0, base_sequence=2**31 - 1), RULES, NOW).count == 1
    assert refused(made(producer_id=1, producer_epoch=0, base_sequence=-1)).code is ErrorCode.INVALID_RECORD
    assert refused(made(producer_id=1, producer_epoch=0, base_sequence=-2)).code is ErrorCode.INVALID_RECORD
    assert refused(made(producer_id=1, producer_epoch=-1, base_sequence=0)).code is ErrorCode.INVALID_RECORD
    assert refused(made(attributes=0x10)).code is ErrorCode.INVALID_RECORD


# G: records that are not well-formed are in test_walker.py; here that both paths meet them.
@pytest.mark.parametrize("codec", list(Codec))
@pytest.mark.parametrize(
    "records",
    [
        pytest.param(record() + b"\0", id="a byte after the last record"),
        pytest.param(record() + record(1), id="a record after the last one"),
        pytest.param(record()[:-1], id="a torn record"),
        pytest.param(record(length=-1), id="a record of negative length"),
        pytest.param(b"\x80\x80\x80\x80\x80\x80\x80" + record(), id="an overlong length"),
        pytest.param(record(headers=varint(1_000_000)), id="a million headers claimed"),
        pytest.param(record(headers=varint(1) + varint(-1) + varint(-1)), id="a header without a key"),
    ],
)
def test_malformed_records(codec: Codec, records: bytes) -> None:
    data = batch(compress(codec, records), attributes=codec, base_timestamp=NOW)
    assert refused(data).code is ErrorCode.INVALID_RECORD


def test_nested_compression_is_only_bytes() -> None:
    """A value that is itself a compressed batch is a value; records that are a batch instead are malformed."""
    inner = honest(Codec.GZIP)
    data = batch(compress(Codec.GZIP, record(value=inner)), attributes=Codec.GZIP, base_timestamp=NOW)
    assert validate_produce(data, RULES, NOW).count == 1
    data = batch(compress(Codec.GZIP, inner), attributes=Codec.GZIP, base_timestamp=NOW)
    assert refused(data).code is ErrorCode.INVALID_RECORD


def test_a_million_headers_that_are_there_are_accepted() -> None:
    headers = varint(1_000_000) + b"\x02h\x01" * 1_000_000
    data = batch(record(headers=headers), base_timestamp=NOW)
    assert validate_produce(data, TopicRules(max_batch_bytes=len(data)), NOW).count == 1


# H
@pytest.mark.parametrize("codec", [Codec.NONE, Codec.LZ4])
@pytest.mark.parametrize("deltas", [(0, 2), (1, 0), (0, 0), (0, -1), (-1, 1), (2**31 - 1, 1), (-(2**31), 1)])
def test_offset_deltas_must_count_up(codec: Codec, deltas: tuple[int, int]) -> None:
    records = record(deltas[0]) + record(deltas[1])
    error = refused(batch(compress(codec, records), count=2, attributes=codec, base_timestamp=NOW))
    assert isinstance(error, InvalidRecords)
    assert error.code is ErrorCode.INVALID_RECORD
    assert error.record_errors[0].batch_index == (0 if deltas[0] else 1)


# I
@pytest.mark.parametrize("codec", list(Codec))
def test_a_compacted_topic_needs_keys(codec: Codec) -> None:
    records = record(0) + record(1, key=None) + record(2, key=b"") + record(3, key=None)
    data = batch(compress(codec, records), count=4, attributes=codec, base_timestamp=NOW)
    assert validate_produce(data, RULES, NOW).count == 4
    error = refused(data, TopicRules(compacted=True))
    assert isinstance(error, InvalidRecords)
    assert error.code is ErrorCode.INVALID_RECORD
    assert [refusal.batch_index for refusal in error.record_errors] == [1, 3]
    assert "key" in error.record_errors[0].message


# J
@pytest.mark.parametrize("codec", list(Codec))
def test_times_beyond_the_limits_of_the_topic(codec: Codec) -> None:
    fine = (NOW - 10_000, NOW + 1_000, -1)
    assert validate_produce(honest(codec, fine), RULES, NOW).max_timestamp == NOW + 1_000
    error = refused(honest(codec, (NOW, NOW - 10_001, NOW, NOW + 1_001)))
    assert isinstance(error, InvalidRecords)
    assert error.code is ErrorCode.INVALID_TIMESTAMP
    assert [refusal.batch_index for refusal in error.record_errors] == [1, 3]
    assert str(NOW - 10_001) in error.record_errors[0].message


def test_a_topic_with_log_append_time_asks_for_no_times() -> None:
    rules = TopicRules(timestamp_type=TimestampType.LOG_APPEND_TIME, timestamp_before_max_ms=0)
    assert validate_produce(honest(times=(0, 5, I64_MAX // 2)), rules, NOW).count == 3


@pytest.mark.parametrize(
    ("base", "delta", "code"),
    [
        (I64_MAX, 0, ErrorCode.INVALID_TIMESTAMP),
        (I64_MIN, 0, ErrorCode.INVALID_TIMESTAMP),
        (0, I64_MAX, ErrorCode.INVALID_TIMESTAMP),
        (0, I64_MIN, ErrorCode.INVALID_TIMESTAMP),
        (I64_MAX, 1, ErrorCode.INVALID_RECORD),
        (I64_MIN, -1, ErrorCode.INVALID_RECORD),
        (I64_MAX, I64_MAX, ErrorCode.INVALID_RECORD),
        (I64_MIN, I64_MIN, ErrorCode.INVALID_RECORD),
    ],
)
def test_times_at_the_edges_of_64_bits(base: int, delta: int, code: ErrorCode) -> None:
    data = batch(record(timestamp_delta=delta), base_timestamp=base)
    rules = TopicRules(timestamp_before_max_ms=I64_MAX // 4, timestamp_after_max_ms=1_000)
    assert refused(data, rules).code is code


def test_limits_as_wide_as_64_bits_allow_every_time() -> None:
    rules = TopicRules(timestamp_before_max_ms=I64_MAX, timestamp_after_max_ms=I64_MAX)
    for time in (I64_MAX, NOW, 0, -1, -2, NOW - I64_MAX):
        assert validate_produce(batch(record(), base_timestamp=time), rules, NOW).count == 1


def test_the_answer_and_the_work_stay_small_when_every_record_is_refused() -> None:
    count = 5_000
    records = b"".join(record(number, key=None) for number in range(count))
    error = refused(batch(records, count=count, base_timestamp=NOW), TopicRules(compacted=True))
    assert isinstance(error, InvalidRecords)
    assert len(error.record_errors) == MAX_RECORD_ERRORS
    assert f"{MAX_RECORD_ERRORS} records refused" in str(error)


def test_a_record_larger_than_a_piece_is_walked_when_compressed() -> None:
    builder = BatchBuilder(codec=Codec.ZSTD)
    for size in (10, 3_000_000, 10, 700_000):
        builder.append(b"k", bytes(size), timestamp=NOW)
    data = builder.build()
    assert validate_produce(data, RULES, NOW).count == 4
    assert refused(data, RULES, InflateLimits(max_bytes=3_700_000)).code is ErrorCode.MESSAGE_TOO_LARGE
