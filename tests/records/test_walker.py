"""Records that lie, one lie at a time; and that the walker never looks beyond its end."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.records.walker import Walker
from tests.records.forge import record, sized, varint


def stepped(data: bytes) -> Walker:
    walker = Walker(data, 0, len(data))
    walker.step()
    return walker


def test_the_example_of_the_docstring() -> None:
    walker = stepped(bytes.fromhex("0e 00 02 04 02 61 01 00"))
    assert (walker.timestamp_delta, walker.offset_delta) == (1, 2)
    assert (walker.key_start, walker.key_size, walker.value_size) == (5, 1, -1)
    assert (walker.header_count, walker.position) == (0, 8)


def body(*fields: bytes) -> bytes:
    joined = b"".join(fields)
    return varint(len(joined)) + joined


LIES = {
    "nothing at all": b"",
    "a length and nothing": varint(10),
    "an empty record": varint(0),
    "a negative length": varint(-1) + record(),
    "a length beyond the end": record(length=100),
    "a length one too short": record(length=len(record()) - 2),
    "a length one too long": record(length=len(record())) + b"\0",
    "a length of six bytes": b"\x80\x80\x80\x80\x80\x00" + record(),
    "a length beyond 32 bits": b"\xff\xff\xff\xff\x1f" + record(),
    "a length that never ends": b"\xff" * 20,
    "only attributes": body(b"\0"),
    "a timestamp of eleven bytes": body(b"\0", b"\x80" * 10 + b"\0", varint(0), b"\x01\x01\x00"),
    "a timestamp beyond 64 bits": body(b"\0", b"\xff" * 9 + b"\x02", varint(0), b"\x01\x01\x00"),
    "a timestamp that never ends": body(b"\0", b"\xff" * 8),
    "an offset delta beyond 32 bits": body(b"\0\0", varint(2**31), b"\x01\x01\x00"),
    "an offset delta of six bytes": body(b"\0\0", b"\x80\x80\x80\x80\x80\x00", b"\x01\x01\x00"),
    "a key of -2 bytes": body(b"\0\0\0", varint(-2), b"\x01\x00"),
    "a key beyond its record": body(b"\0\0\0", varint(10), b"k\x01\x00") + record(),
    "a key of 2 GiB": body(b"\0\0\0", varint(2**31 - 1), b"\x01\x00"),
    "a value of -2 bytes": body(b"\0\0\0\x01", varint(-2), b"\x00"),
    "a value beyond its record": body(b"\0\0\0\x01", varint(10), b"v\x00") + record(),
    "a value of -2 GiB": body(b"\0\0\0\x01", varint(-(2**31)), b"\x00"),
    "no header count": body(b"\0\0\0\x01\x01"),
    "-1 headers": record(headers=varint(-1)),
    "more headers than bytes": record(headers=varint(1_000_000)),
    "2**31 - 1 headers": record(headers=varint(2**31 - 1) + b"\0" * 100),
    "one header too many": record(headers=varint(2) + sized(b"h") + sized(b"v")),
    "one header too few": record(headers=varint(0) + sized(b"h") + sized(b"v")),
    "a header without a key": record(headers=varint(1) + sized(None) + sized(b"v")),
    "a header key beyond its record": record(headers=varint(1) + varint(9) + b"h" + sized(b"v")) + record(),
    "a header value beyond its record": record(headers=varint(1) + sized(b"h") + varint(9) + b"v") + record(),
    "a header value of -2 bytes": record(headers=varint(1) + sized(b"h") + varint(-2)),
}


@pytest.mark.parametrize("data", LIES.values(), ids=LIES.keys())
def test_a_lie_is_an_invalid_record(data: bytes) -> None:
    with pytest.raises(KafkaError) as caught:
        stepped(data)
    assert caught.value.code is ErrorCode.INVALID_RECORD


@given(delta=st.integers(-(2**63), 2**63 - 1), offset=st.integers(-(2**31), 2**31 - 1))
def test_numbers_of_every_width(delta: int, offset: int) -> None:
    walker = stepped(record(offset, timestamp_delta=delta))
    assert (walker.timestamp_delta, walker.offset_delta) == (delta, offset)


@given(st.binary(max_size=40), st.binary(max_size=40))
def test_bytes_beyond_the_end_have_no_say(data: bytes, beyond: bytes) -> None:
    def outcome(walker: Walker) -> object:
        try:
            walker.step()
        except KafkaError as error:
            return str(error)
        assert walker.position <= len(data)
        return walker.position

    assert outcome(Walker(data, 0, len(data))) == outcome(Walker(data + beyond, 0, len(data)))


@given(
    st.lists(st.tuples(st.none() | st.binary(max_size=300), st.integers(-5, 2**40)), min_size=1, max_size=8),
    st.integers(0, 3_000),
)
def test_missing_says_how_much_the_next_record_lacks(records: list[tuple[bytes | None, int]], cut: int) -> None:
    encoded = [record(n, value=value, timestamp_delta=delta) for n, (value, delta) in enumerate(records)]
    data = b"".join(encoded)
    end = min(cut, len(data))
    walker = Walker(data, 0, end)
    for one in encoded:
        lacking = walker.missing()
        if walker.position + len(one) <= end:
            assert lacking == 0
            walker.step()
        else:
            assert lacking in (1, walker.position + len(one) - end)
            break
