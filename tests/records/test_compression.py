"""Five codecs both ways, under limits, with streams that are torn, padded, or not streams at all."""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress

import cramjam
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.records.codec_snappy import XERIAL_HEADER
from ixion.language.records.compression import Codec, InflateLimits, compress, inflate, inflate_chunks

COMPRESSED = [Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD]
WIDE = InflateLimits()


def refused(codec: Codec, data: bytes, limits: InflateLimits = WIDE) -> KafkaError:
    with pytest.raises(KafkaError) as caught:
        inflate(codec, data, limits)
    return caught.value


@given(data=st.binary(max_size=2000), repeat=st.integers(1, 200), codec=st.sampled_from(list(Codec)))
@settings(deadline=None)
def test_what_goes_in_comes_out(data: bytes, repeat: int, codec: Codec) -> None:
    data *= repeat
    assert inflate(codec, compress(codec, data)) == data


@pytest.mark.parametrize("codec", COMPRESSED)
@pytest.mark.parametrize("size", [0, 1, 256 * 1024 - 1, 256 * 1024, 256 * 1024 + 1, 512 * 1024])
def test_data_that_ends_near_the_end_of_a_piece(codec: Codec, size: int) -> None:
    assert inflate(codec, compress(codec, bytes(size))) == bytes(size)


@pytest.mark.parametrize("codec", COMPRESSED)
def test_large_data_comes_in_small_pieces(codec: Codec) -> None:
    data = bytes(range(256)) * 10_000
    pieces = list(inflate_chunks(codec, compress(codec, data)))
    assert b"".join(pieces) == data
    assert max(map(len, pieces)) <= 256 * 1024
    assert len(pieces) > 5


@pytest.mark.parametrize(
    ("codec", "levels"),
    [
        (Codec.GZIP, [-1, 1, 9]),
        (Codec.LZ4, [1, 3, 9, 12, 17]),
        (Codec.ZSTD, [-131072, -5, 1, 3, 22]),
    ],
)
def test_levels_as_kafka_counts_them(codec: Codec, levels: list[int]) -> None:
    data = b"the same words, the same words, other words " * 500
    for level in levels:
        assert inflate(codec, compress(codec, data, level)) == data
    for level in (min(levels) - 1, max(levels) + 1):
        with pytest.raises(ValueError, match=str(level)):
            compress(codec, data, level)


def test_gzip_has_no_level_0() -> None:
    with pytest.raises(ValueError, match="no level 0"):
        compress(Codec.GZIP, b"", 0)


@pytest.mark.parametrize("codec", COMPRESSED)
def test_a_stream_cut_anywhere_is_refused(codec: Codec) -> None:
    whole = compress(codec, b"some words that are compressed, some words that are not" * 3)
    for end in range(len(whole)):
        if codec is Codec.SNAPPY and end == len(XERIAL_HEADER):
            assert inflate(codec, whole[:end]) == b""  # a header and no block: an empty stream
        else:
            assert refused(codec, whole[:end]).code is ErrorCode.INVALID_RECORD, end


@pytest.mark.parametrize("codec", COMPRESSED)
@pytest.mark.parametrize("tail", [b"\0", b"garbage" * 20_000])
def test_bytes_after_a_stream_are_refused(codec: Codec, tail: bytes) -> None:
    assert refused(codec, compress(codec, b"words") + tail).code is ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.LZ4, Codec.ZSTD])
def test_a_second_stream_is_refused(codec: Codec) -> None:
    assert refused(codec, compress(codec, b"words") * 2).code is ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("codec", COMPRESSED)
@given(data=st.binary(max_size=100))
@settings(deadline=None, max_examples=60)
def test_bytes_that_are_no_stream_are_refused_or_inflate(codec: Codec, data: bytes) -> None:
    limits = InflateLimits(max_bytes=1000)
    with suppress(KafkaError):
        assert len(inflate(codec, data, limits)) <= 1000


@pytest.mark.parametrize("codec", COMPRESSED)
def test_the_limit_is_exact(codec: Codec) -> None:
    data = bytes(100_000)
    packed = compress(codec, data)
    assert len(inflate(codec, packed, InflateLimits(max_bytes=100_000))) == 100_000
    error = refused(codec, packed, InflateLimits(max_bytes=99_999))
    assert error.code is ErrorCode.MESSAGE_TOO_LARGE
    assert "99999" in str(error)


def test_the_ratio_counts_beyond_the_free_bytes() -> None:
    limits = InflateLimits(max_bytes=1_000_000, max_ratio=10, free_bytes=5_000)
    assert limits.bound(100) == 5_000
    assert limits.bound(1_000) == 10_000
    assert limits.bound(500_000) == 1_000_000
    packed = compress(Codec.ZSTD, bytes(50_000))
    assert refused(Codec.ZSTD, packed, limits).code is ErrorCode.MESSAGE_TOO_LARGE


def test_snappy_comes_bare_or_framed() -> None:
    data = b"words and words and words " * 5_000
    bare = bytes(cramjam.snappy.compress_raw(data))
    assert inflate(Codec.SNAPPY, bare) == data
    framed = compress(Codec.SNAPPY, data)
    assert framed.startswith(b"\x82SNAPPY\0\0\0\0\x01\0\0\0\x01")
    assert inflate(Codec.SNAPPY, framed) == data


def test_snappy_in_a_million_tiny_blocks_is_refused() -> None:
    block = bytes(cramjam.snappy.compress_raw(b"x"))
    tiny = len(block).to_bytes(4, "big") + block
    assert inflate(Codec.SNAPPY, XERIAL_HEADER + tiny * 16) == b"x" * 16
    assert refused(Codec.SNAPPY, XERIAL_HEADER + tiny * 1_000_000).code is ErrorCode.INVALID_RECORD
    zeros = bytes(cramjam.snappy.compress_raw(bytes(1024)))
    small = len(zeros).to_bytes(4, "big") + zeros
    assert inflate(Codec.SNAPPY, XERIAL_HEADER + small * 1_000) == bytes(1024 * 1_000)


BARE = bytes(cramjam.snappy.compress_raw(b"words" * 10))


@pytest.mark.parametrize(
    "data",
    [
        pytest.param(XERIAL_HEADER + (-1).to_bytes(4, "big", signed=True) + BARE, id="a block of -1 bytes"),
        pytest.param(XERIAL_HEADER + b"\x7f\xff\xff\xff" + BARE, id="a block of 0x7fffffff bytes"),
        pytest.param(XERIAL_HEADER + b"\x80\0\0\0" + BARE, id="a block of -2 GiB"),
        pytest.param(XERIAL_HEADER + b"\0\0\0\0" + BARE, id="a block of no bytes"),
        pytest.param(XERIAL_HEADER + (len(BARE) + 1).to_bytes(4, "big") + BARE, id="a block one byte too long"),
        pytest.param(XERIAL_HEADER + (len(BARE) - 1).to_bytes(4, "big") + BARE, id="a block one byte too short"),
        pytest.param(XERIAL_HEADER + b"\0\0", id="half a block size"),
        pytest.param(b"\xff\xff\xff\xff\x0f" + BARE[1:], id="4 GiB claimed"),
        pytest.param(b"\xff\xff\xff\xff\xff\xff" + BARE[1:], id="a size that never ends"),
        pytest.param(bytes([BARE[0] + 1]) + BARE[1:], id="one byte more claimed than there is"),
        pytest.param(bytes([BARE[0] - 1]) + BARE[1:], id="one byte less claimed than there is"),
    ],
)
def test_snappy_that_lies_about_sizes(data: bytes) -> None:
    assert refused(Codec.SNAPPY, data).code is ErrorCode.INVALID_RECORD


@pytest.mark.parametrize(
    ("codec", "module", "package"),
    [
        (Codec.SNAPPY, "cramjam", "cramjam"),
        (Codec.LZ4, "lz4.frame", "lz4"),
        (Codec.ZSTD, "compression" if sys.version_info >= (3, 14) else "backports.zstd", "backports.zstd"),
    ],
)
def test_a_missing_library_is_named(monkeypatch: pytest.MonkeyPatch, codec: Codec, module: str, package: str) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    if "." in module:
        parent, _, child = module.rpartition(".")
        monkeypatch.delattr(sys.modules[parent], child, raising=False)
    error = refused(codec, b"anything")
    assert error.code is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert package in str(error)


def test_no_codec_is_imported_before_its_first_batch() -> None:
    program = """
import subprocess
import sys
import ixion.language.records.control, ixion.language.records.recode, ixion.language.records.validate
print([name for name in ("backports.zstd", "compression", "cramjam", "lz4", "crc32c") if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
