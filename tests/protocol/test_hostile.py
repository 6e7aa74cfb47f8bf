"""Frames made to hurt. Each must end in a DecodeError that says where, and cost less than twice its own size."""

from __future__ import annotations

import struct
import tracemalloc

import pytest

from ixion.language.protocol.codec.message import MessageCodec
from ixion.language.protocol.envelope import decode_request
from ixion.language.protocol.flaws import DecodeError
from ixion.language.protocol.messages.k01_fetch import FetchPartition, FetchRequest, FetchTopic
from ixion.language.protocol.registry import ApiKey

KILOBYTE = 1024
MEGABYTE = 1024 * KILOBYTE
# What raising, formatting and catching one exception takes, whatever the frame.
ALLOWANCE = 64 * KILOBYTE


def uvarint(value: int) -> bytes:
    encoded = bytearray()
    while value > 127:
        encoded.append(value & 127 | 128)
        value >>= 7
    encoded.append(value)
    return bytes(encoded)


def refuse(codec: MessageCodec, frame: bytes) -> DecodeError:
    """Decode, expecting an error; assert what it cost."""
    tracemalloc.start()
    try:
        with pytest.raises(DecodeError) as caught:
            codec.decode(frame)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2 * len(frame) + ALLOWANCE
    assert caught.value.api == codec.name
    assert caught.value.version == codec.version
    return caught.value


def header(api: ApiKey, version: int, tagged: bytes = b"\0") -> bytes:
    return struct.pack(">hhih", api, version, 7, -1) + tagged


PRODUCE = ApiKey.PRODUCE
METADATA = ApiKey.METADATA
FETCH = ApiKey.FETCH


def test_twelve_bytes_that_promise_two_billion_topics() -> None:
    error = refuse(METADATA.request(0), struct.pack(">i", 2**31 - 1) + bytes(8))
    assert error.path == "topics"
    assert error.offset == 4
    assert "2147483647 elements" in error.reason


def test_compact_array_of_four_billion() -> None:
    error = refuse(METADATA.request(12), uvarint(2**32 - 1) + bytes(8))
    assert error.path == "topics"
    assert "4294967294 elements" in error.reason


def test_array_flood() -> None:
    """A megabyte of empty topic names fits in bytes, but not in the budget."""
    count = MEGABYTE // 2
    error = refuse(METADATA.request(0), struct.pack(">i", count) + bytes(2 * count))
    assert error.reason == "more elements than a frame may hold"


def test_nested_flood() -> None:
    """Topics with partition arrays that are each believable, and too many together."""
    partitions = struct.pack(">i", 1000) + bytes(4000)
    topic = struct.pack(">h", 0) + partitions
    frame = struct.pack(">h", 0) + struct.pack(">i", 300) + topic * 300
    codec = ApiKey.OFFSET_FETCH.request(5)
    error = refuse(codec, frame)
    assert error.path.startswith("topics[24")
    assert error.path.endswith("].partition_indexes")
    assert error.reason == "more elements than a frame may hold"


def test_nested_promises() -> None:
    """Every topic promises as many partitions as the whole frame could hold; only the last word is a lie."""
    codec = FETCH.request(4)
    frame = struct.pack(">iiiibi", -1, 0, 0, 0, 0, 1) + struct.pack(">hi", 0, MEGABYTE) + bytes(MEGABYTE)
    error = refuse(codec, frame)
    assert error.path == "topics[0].partitions"
    assert "1048576 elements of at least 16 bytes" in error.reason


def test_a_good_frame_of_many_elements_with_a_bad_end_builds_nothing() -> None:
    count = 200_000
    frame = struct.pack(">h", 0) + struct.pack(">ihi", 1, 0, count) + bytes(4 * count) + b"\0"
    error = refuse(ApiKey.OFFSET_FETCH.request(5), frame)
    assert error.reason == "1 bytes left over"
    assert error.offset == len(frame) - 1


def test_tagged_field_flood_in_a_body() -> None:
    """Two bytes a field: Kafka built an object for each of twenty million of them."""
    flood = b"".join(uvarint(tag) + b"\0" for tag in range(100, 300_000))
    error = refuse(METADATA.request(12), uvarint(0) + b"\0\0" + uvarint(299_900) + flood)
    assert "299900 tagged fields" in error.reason


def test_tagged_field_flood_in_the_header_before_anyone_logged_in() -> None:
    flood = b"".join(uvarint(tag) + b"\0" for tag in range(200_000))
    frame = header(ApiKey.API_VERSIONS, 3, uvarint(200_000) + flood) + b"\1\1\0"
    tracemalloc.start()
    try:
        with pytest.raises(DecodeError, match=r"RequestHeader v2, byte .*: 200000 tagged fields; at most 64 are read"):
            decode_request(frame)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2 * len(frame) + ALLOWANCE


def test_tagged_fields_of_many_structures_share_the_budget() -> None:
    tags = uvarint(60) + b"".join(uvarint(tag) + b"\0" for tag in range(10, 70))
    topic = bytes(16) + uvarint(0) + tags
    error = refuse(METADATA.request(12), uvarint(5001) + topic * 5000 + b"\0\0\0")
    assert error.reason == "more elements than a frame may hold"


def test_one_tag_twice() -> None:
    frame = uvarint(0) + b"\0\0" + b"\2" + b"\7\0" + b"\7\0"
    assert refuse(METADATA.request(12), frame).reason == "tag 7 after tag 7"


def test_unknown_tags_are_passed_over() -> None:
    codec = METADATA.request(12)
    value = METADATA.request_table.blank().replace(topics=None)
    known = codec.encode(value)
    assert known.endswith(b"\0")
    assert codec.decode(known[:-1] + b"\2" + b"\7\3abc" + uvarint(2**32 - 1) + b"\0") == value


def test_known_tag_with_a_lying_size() -> None:
    codec = FETCH.request(12)
    good = codec.encode(FETCH.request_table.blank().replace(max_wait_ms=1, cluster_id="abc"))
    assert good.endswith(b"\1\0\4\4abc")
    longer = refuse(codec, good[:-7] + b"\1\0\5\4abcd")
    assert (longer.path, longer.reason) == ("cluster_id", "1 bytes left over in a tagged field")
    shorter = refuse(codec, good[:-7] + b"\1\0\3\4ab")
    assert (shorter.path, shorter.reason) == ("cluster_id", "3 bytes wanted, 2 left")


@pytest.mark.parametrize(
    ("varint", "reason"),
    [
        (b"\x80\x80\x80\x80\x80\x00", "varint of more than 5 bytes"),
        (b"\xff" * 11, "varint of more than 5 bytes"),
        (b"\xff\xff\xff\xff\x1f", "varint of more than 32 bits"),
        (b"\x80\x80", "frame ends inside a varint"),
        (b"", "frame ends inside a varint"),
    ],
)
def test_overlong_varints(varint: bytes, reason: str) -> None:
    error = refuse(METADATA.request(12), varint)
    assert (error.path, error.reason) == ("topics", reason)


@pytest.mark.parametrize("size", [0x7FFF, 300])
def test_lying_string_sizes(size: int) -> None:
    frame = struct.pack(">hih", -1, 1, size) + b"x" * 200
    error = refuse(ApiKey.ADD_PARTITIONS_TO_TXN.request(0), struct.pack(">h", size) + b"x" * 200)
    assert (error.path, error.offset) == ("v3_and_below_transactional_id", 2)
    assert refuse(PRODUCE.request(3), frame).offset > 0


def test_lying_record_sizes() -> None:
    frame = struct.pack(">hhi", -1, 1, 0) + struct.pack(">ih3sii", 1, 3, b"abc", 1, 0) + struct.pack(">i", 2**31 - 1)
    error = refuse(PRODUCE.request(3), frame)
    assert error.path == "topic_data[0].partition_data[0].records"
    assert str(error) == (
        "ProduceRequest v3, topic_data[0].partition_data[0].records, byte 29: 2147483647 bytes wanted, 0 left"
    )


def test_negative_sizes() -> None:
    assert refuse(METADATA.request(0), struct.pack(">i", -2)).reason == "length -2"
    assert refuse(METADATA.request(0), struct.pack(">ih", 1, -7)).reason == "length -7"


def test_null_where_none_is_allowed() -> None:
    error = refuse(METADATA.request(0), struct.pack(">ih", 1, -1))
    assert (error.path, error.reason) == ("topics[0].name", "null where no null is allowed")


@pytest.mark.parametrize("text", [b"\xff\xfe", b"ab\xc3", b"\xed\xa0\x80", b"\xc0\x80", b"x" * 100 + b"\x80"])
def test_strings_that_are_not_utf8(text: bytes) -> None:
    error = refuse(METADATA.request(0), struct.pack(">ih", 1, len(text)) + text)
    assert (error.path, error.reason) == ("topics[0].name", "not UTF-8")


def test_a_compact_string_longer_than_any_classic_one() -> None:
    text = b"x" * 40_000
    frame = uvarint(2) + bytes(16) + uvarint(len(text) + 1) + text + b"\0" + b"\0\0\0"
    assert "40000 bytes" in refuse(METADATA.request(12), frame).reason


@pytest.mark.parametrize("frame", [b"", b"\0", b"\0\0\0", b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00"])
def test_no_request_at_all(frame: bytes) -> None:
    """Cut off, HTTP, TLS: an error of ours, whichever."""
    with pytest.raises(Exception, match=r"is not supported|at least a key") as caught:
        decode_request(frame)
    assert type(caught.value).__module__ == "ixion.language.protocol.flaws"


def test_every_truncation_of_a_good_frame() -> None:
    codec = FETCH.request(17)
    partition = FetchPartition(partition=1, fetch_offset=5, partition_max_bytes=7, replica_directory_id=b"d" * 16)
    topic = FetchTopic(topic_id=b"t" * 16, partitions=(partition,))
    frame = codec.encode(FetchRequest(max_wait_ms=1, min_bytes=1, cluster_id="c", topics=(topic,)))
    for size in range(len(frame)):
        refuse(codec, frame[:size])


def test_what_a_good_but_greedy_frame_may_cost() -> None:
    """Six bytes a partition is the densest request there is; with 250 000 elements it stays under 75 MB."""
    count = 20_000
    partitions = uvarint(count + 1) + b"".join(struct.pack(">i", 1000 + index) + b"\1\0" for index in range(count))
    frame = b"\0" + struct.pack(">hi", 1, 0) + b"\2" + b"\2t" + partitions + b"\0\0"
    codec = PRODUCE.request(9)
    codec.decode(frame)
    tracemalloc.start()
    try:
        value = codec.decode(frame)
        size, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert value == codec.decode(frame)
    assert size < 300 * count
