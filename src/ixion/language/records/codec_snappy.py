"""Snappy, bare or in the framing of the Java library (xerial) that Kafka's own clients use.

The framing: 8 bytes ``82 "SNAPPY" 00``, two i32 of versions, then blocks, each an i32 with its compressed size and that
many bytes of bare snappy. A bare block opens with its inflated size as a varint. No snappy element makes more than 64
bytes from 3, so a claim beyond 22 times the input is false; it is refused before memory is allocated for it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from ixion.language.records.faults import invalid, too_large, unsupported_codec

XERIAL_MAGIC: Final = b"\x82SNAPPY\x00"
XERIAL_HEADER: Final = XERIAL_MAGIC + b"\x00\x00\x00\x01\x00\x00\x00\x01"
BLOCK_SIZE: Final = 32 * 1024
MAX_RATIO: Final = 22
# The Java library's smallest block is 1 kB, which is 50 bytes compressed if it holds zeros. A stream of much smaller
# blocks only costs us time.
MIN_MEAN_BLOCK: Final = 48
SPARE_BLOCKS: Final = 16


def chunks(data: memoryview, bound: int) -> Iterator[bytes]:
    library = load()
    if bytes(data[: len(XERIAL_MAGIC)]) != XERIAL_MAGIC:
        yield inflate_block(library, data, bound)
        return
    at = len(XERIAL_HEADER)
    end = len(data)
    if end < at:
        raise invalid("a snappy stream ends inside its header")
    blocks_left = SPARE_BLOCKS + end // MIN_MEAN_BLOCK
    while at < end:
        blocks_left -= 1
        if blocks_left < 0:
            raise invalid(f"a snappy stream of {end} bytes has blocks of less than {MIN_MEAN_BLOCK} bytes on average")
        size = int.from_bytes(data[at : at + 4], "big", signed=True)
        at += 4
        if size <= 0 or size > end - at:
            raise invalid(f"a snappy block claims {size} bytes, {max(end - at, 0)} are left")
        yield inflate_block(library, data[at : at + size], bound)
        at += size


def inflate_block(library: Any, block: memoryview, bound: int) -> bytes:
    size = claimed_size(block)
    if size > MAX_RATIO * len(block):
        raise invalid(f"a snappy block of {len(block)} bytes claims to inflate to {size}")
    if size > bound:
        raise too_large(f"a snappy block inflates to {size} bytes, {bound} are allowed")
    inflated = bytearray(size)
    try:
        made: int = library.decompress_raw_into(block, inflated)
    except Exception as error:
        raise invalid(f"not a snappy block: {error}") from error
    if made != size:
        raise invalid(f"a snappy block inflates to {made} bytes instead of {size}")
    return bytes(inflated)


def claimed_size(block: memoryview) -> int:
    size = 0
    for index in range(min(5, len(block))):
        byte: int = block[index]
        size |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            return size
    raise invalid("a snappy block without a size")


def compress(data: bytes) -> bytes:
    library = load()
    view = memoryview(data)
    framed = bytearray(XERIAL_HEADER)
    for start in range(0, len(data), BLOCK_SIZE):
        block = bytes(library.compress_raw(view[start : start + BLOCK_SIZE]))
        framed += len(block).to_bytes(4, "big")
        framed += block
    return bytes(framed)


def load() -> Any:
    try:
        from cramjam import snappy
    except ImportError as error:
        raise unsupported_codec("snappy needs the package cramjam, which is not installed") from error
    return snappy
