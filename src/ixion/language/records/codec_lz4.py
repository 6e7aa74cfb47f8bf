"""lz4 in its standard frame, which batches of magic 2 contain.

Kafka's Java reader accepts only independent blocks without a dictionary. So we write independent blocks of 64 kB,
without a content checksum and without a content size.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from ixion.language.records.faults import invalid, unsupported_codec

OUTPUT_PIECE: Final = 256 * 1024
MIN_PIECE: Final = 16 * 1024
# Kafka's default level selects the fast compressor; any other level selects the slow one at that level.
KAFKA_DEFAULT_LEVEL: Final = 9
FAST: Final = 0


def chunks(data: memoryview) -> Iterator[bytes]:
    library = load()
    context = library.create_decompression_context()
    piece_size = min(OUTPUT_PIECE, max(MIN_PIECE, 8 * len(data)))
    at = 0
    while True:
        try:
            piece, used, ended = library.decompress_chunk(context, data[at:], max_length=piece_size)
        except (RuntimeError, ValueError) as error:
            raise invalid(f"not an lz4 frame: {error}") from error
        at += used
        if piece:
            yield piece
        if ended:
            break
        if not piece and (used == 0 or at == len(data)):
            raise invalid("an lz4 frame ends early")
    if at < len(data):
        raise invalid(f"{len(data) - at} bytes follow an lz4 frame")


def compress(data: bytes, level: int) -> bytes:
    library = load()
    framed = library.compress(
        data,
        compression_level=FAST if level == KAFKA_DEFAULT_LEVEL else level,
        block_size=library.BLOCKSIZE_MAX64KB,
        block_linked=False,
        store_size=False,
    )
    return bytes(framed)


def load() -> Any:
    try:
        from lz4 import frame
    except ImportError as error:
        raise unsupported_codec("lz4 needs the package lz4, which is not installed") from error
    return frame
