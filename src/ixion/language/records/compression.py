"""Compresses the records of a batch, and inflates them without trusting the sender.

A few hundred bytes can claim to inflate to gigabytes (zstd 32 000 : 1, gzip 1 032 : 1, lz4 255 : 1, snappy 22 : 1), so
every inflation runs under `InflateLimits`, in pieces of at most 256 kB, and stops at the first piece beyond them. (A
bare snappy block is inflated whole; `codec_snappy` checks its size first.)

Example, with the default limits: 1 kB may inflate to 16 MiB, which every batch may reach; 1 MiB to 64 MiB, which no
batch may exceed; in between, the limit is 128 times the compressed size.

Libraries (µs to inflate 16 kB / 1 MB of text, ours under a limit): gzip by the standard library's zlib, 45 / 3 400
(cramjam 39 / 3 200, without a limit); lz4 by `lz4`, 7 / 470 (cramjam 11 / 400, without a limit); zstd by the standard
library from Python 3.14 and its backport before, 32 / 1 050 and 2 MB installed (`zstandard` 28 / 1 070, 24 MB, 24 ms to
import); snappy by `cramjam`, 3 / 820, which python-snappy uses too. The first batch that needs a library imports it.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum
from typing import Final

from ixion.language.model.errors import KafkaError
from ixion.language.records import codec_gzip, codec_lz4, codec_snappy, codec_zstd
from ixion.language.records.faults import too_large, unsupported_codec


class Codec(IntEnum):
    """Compression codecs: the id in a batch's attributes, the name in `compression.type`."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


CODECS: Final = (Codec.NONE, Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD)


class InflateLimits:
    """How far a compressed batch may inflate: beyond `free_bytes`, to at most `max_ratio` times its compressed size.

    Not a dataclass: importing `dataclasses` takes 8 ms in every client.
    """

    def __init__(
        self, *, max_bytes: int = 64 * 1024 * 1024, max_ratio: int = 128, free_bytes: int = 16 * 1024 * 1024
    ) -> None:
        self.max_bytes: Final = max_bytes
        self.max_ratio: Final = max_ratio
        self.free_bytes: Final = free_bytes

    def bound(self, compressed_size: int) -> int:
        return min(self.max_bytes, max(self.free_bytes, self.max_ratio * compressed_size))


DEFAULT_LIMITS: Final = InflateLimits()


def no_such_codec(codec_id: int) -> KafkaError:
    return unsupported_codec(f"codec {codec_id} does not exist; the ids are 0 (none) to 4 (zstd)")


def inflate(codec: Codec, data: bytes | memoryview, limits: InflateLimits = DEFAULT_LIMITS) -> bytes:
    """Inflate all of `data`. KafkaError: MESSAGE_TOO_LARGE beyond the limits, INVALID_RECORD if the bytes are not a
    stream of the codec, UNSUPPORTED_COMPRESSION_TYPE if its library is not installed."""
    chunks = list(inflate_chunks(codec, data, limits))
    return chunks[0] if len(chunks) == 1 else b"".join(chunks)


def inflate_chunks(codec: Codec, data: bytes | memoryview, limits: InflateLimits = DEFAULT_LIMITS) -> Iterator[bytes]:
    """As `inflate`, piece by piece: the caller can drop one piece before the next is made."""
    view = memoryview(data)
    bound = limits.bound(len(view))
    total = 0
    for chunk in open_stream(codec, view, bound):
        total += len(chunk)
        if total > bound:
            raise too_large(f"{len(view)} bytes of {codec.name.lower()} inflate to more than the {bound} allowed")
        yield chunk


def open_stream(codec: Codec, view: memoryview, bound: int) -> Iterator[bytes]:
    if codec == Codec.GZIP:
        return codec_gzip.chunks(view)
    if codec == Codec.SNAPPY:
        return codec_snappy.chunks(view, bound)
    if codec == Codec.LZ4:
        return codec_lz4.chunks(view)
    if codec == Codec.ZSTD:
        return codec_zstd.chunks(view)
    return iter((bytes(view),))


def compress(codec: Codec, data: bytes, level: int | None = None) -> bytes:
    """Compress, in the framing of Kafka's own producer.

    `level` is Kafka's: gzip -1 or 1 to 9, lz4 1 to 17, zstd -131072 to 22; None is the default of the codec. ValueError
    outside the range. Snappy has no levels.
    """
    if codec == Codec.GZIP:
        return codec_gzip.compress(data, -1 if level is None else check_level("gzip", level, -1, 9))
    if codec == Codec.SNAPPY:
        return codec_snappy.compress(data)
    if codec == Codec.LZ4:
        return codec_lz4.compress(data, 9 if level is None else check_level("lz4", level, 1, 17))
    if codec == Codec.ZSTD:
        return codec_zstd.compress(data, 3 if level is None else check_level("zstd", level, -131072, 22))
    return data


def check_level(name: str, level: int, low: int, high: int) -> int:
    if not low <= level <= high or (name == "gzip" and level == 0):
        raise ValueError(f"{name} has no level {level}; the levels are {low} to {high}")
    return level
