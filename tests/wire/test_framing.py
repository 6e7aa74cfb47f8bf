"""Frames come out the same, however the stream was cut."""

from __future__ import annotations

import struct
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ixion.language.wire import Framer, Looks, WireError

LIMIT = 1000


def framed(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


def cut(stream: bytes, places: list[int]) -> list[bytes]:
    edges = sorted({0, len(stream), *(place % (len(stream) + 1) for place in places)})
    return [stream[start:end] for start, end in pairwise(edges)]


def drain(framer: Framer) -> list[bytes]:
    frames = []
    while framer.complete():
        data, start, end = framer.take()
        frames.append(data[start:end])
    return frames


bodies = st.lists(st.binary(min_size=1, max_size=60), max_size=12)
places = st.lists(st.integers(0, 2000), max_size=25)


@given(bodies, places, st.data())
def test_any_split_of_the_stream_gives_the_same_frames(wanted: list[bytes], at: list[int], data: st.DataObject) -> None:
    framer = Framer(LIMIT)
    frames: list[bytes] = []
    buffer = bytearray(4 * LIMIT)
    for chunk in cut(b"".join(map(framed, wanted)), at):
        if data.draw(st.booleans()):  # a chunk of its own, or a part of a buffer that is written over afterwards
            framer.feed(chunk)
        else:
            buffer[: len(chunk)] = chunk
            framer.feed_from(memoryview(buffer)[: len(chunk)])
            buffer[: len(chunk)] = bytes(len(chunk))
        if data.draw(st.booleans()):  # frames may be taken at once or later
            frames += drain(framer)
    frames += drain(framer)
    assert frames == wanted
    assert not framer.inside_frame


@given(bodies, st.data())
def test_a_reader_that_trusts_reads_straight_into_the_frame(wanted: list[bytes], data: st.DataObject) -> None:
    framer = Framer(LIMIT)
    framer.trusting = True
    frames: list[bytes] = []
    stream = b"".join(map(framed, wanted))
    at = 0
    while at < len(stream):
        frames += drain(framer)
        room = framer.room
        size = data.draw(st.integers(1, 90))
        if room is not None and data.draw(st.booleans()):
            size = min(size, len(room), len(stream) - at)
            room[:size] = stream[at : at + size]
            framer.received(size)
        else:
            framer.feed(stream[at : at + size])
        at += size
    assert frames + drain(framer) == wanted
    assert framer.room is None
    assert not framer.inside_frame


def test_a_large_frame_is_read_into_without_a_copy() -> None:
    framer = Framer(LIMIT)
    framer.trusting = True
    framer.feed(framed(bytes(LIMIT))[:10])
    assert not framer.complete()
    room = framer.room
    assert room is not None
    assert len(room) == LIMIT - 6
    room[:] = b"x" * len(room)
    framer.received(len(room))
    data, start, end = framer.take()
    assert (start, end) == (0, LIMIT)
    assert data == bytes(6) + b"x" * (LIMIT - 6)


@given(st.binary(min_size=1, max_size=200), places)
def test_the_size_is_known_as_soon_as_its_four_bytes_are(body: bytes, at: list[int]) -> None:
    framer = Framer(LIMIT)
    seen = 0
    for chunk in cut(framed(body), at):
        framer.feed(chunk)
        seen += len(chunk)
        assert framer.announced() == (len(body) if seen >= 4 else -1)
        assert framer.complete() == (seen == 4 + len(body))
    data, start, end = framer.take()
    assert data[start:end] == body


def test_a_frame_within_a_chunk_is_not_copied() -> None:
    chunk = framed(b"one") + framed(b"two")
    framer = Framer(LIMIT)
    framer.feed(chunk)
    for start in (4, 11):
        assert framer.complete()
        data, at, end = framer.take()
        assert data is chunk
        assert (at, end) == (start, start + 3)


def test_announced_bytes_take_no_memory_before_they_come() -> None:
    framer = Framer(2**31 - 1)
    framer.feed(struct.pack(">i", 2**31 - 1))
    assert framer.announced() == 2**31 - 1
    assert not framer.complete()
    framer.feed(b"x" * 10)
    assert not framer.complete()
    assert framer.inside_frame


@pytest.mark.parametrize(
    ("stream", "looks"),
    [
        (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", Looks.HTTP),
        (b"POST /topics HTTP/1.1\r\n", Looks.HTTP),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", Looks.HTTP),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", Looks.TLS),
        (b"SSH-2.0-OpenSSH_9.6\r\n", Looks.SSH),
        (struct.pack(">i", -1), Looks.NEGATIVE),
        (struct.pack(">i", 0), Looks.EMPTY),
        (struct.pack(">i", LIMIT + 1), Looks.OVERSIZE),
    ],
)
def test_an_absurd_size_says_what_it_looks_like(stream: bytes, looks: Looks) -> None:
    framer = Framer(LIMIT)
    for place in range(3):
        framer.feed(stream[place : place + 1])
        assert framer.announced() == -1
    framer.feed(stream[3:])
    with pytest.raises(WireError) as caught:
        framer.announced()
    assert caught.value.looks is looks
    with pytest.raises(WireError):  # a fault is final
        framer.complete()


def test_a_frame_of_exactly_the_limit_is_allowed() -> None:
    framer = Framer(LIMIT)
    framer.feed(framed(bytes(LIMIT)))
    assert drain(framer) == [bytes(LIMIT)]


def test_a_client_that_sent_a_valid_request_is_not_taken_for_another_protocol() -> None:
    framer = Framer(LIMIT)
    framer.shown = True
    framer.feed(b"GET / HTTP/1.1")
    with pytest.raises(WireError) as caught:
        framer.announced()
    assert caught.value.looks is Looks.OVERSIZE
