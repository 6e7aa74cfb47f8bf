"""gzip by the standard library's zlib: one member, which must end where the batch does."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Final

from ixion.language.records.faults import invalid

# wbits for "a gzip header and trailer around a 32 kB window".
GZIP: Final = 31
# zlib copies the input that it did not use, so the input is passed in pieces too.
INPUT_PIECE: Final = 64 * 1024
OUTPUT_PIECE: Final = 256 * 1024


def chunks(data: memoryview) -> Iterator[bytes]:
    stream = zlib.decompressobj(GZIP)
    for start in range(0, len(data), INPUT_PIECE):
        if stream.eof:
            raise invalid(f"{len(data) - start} bytes follow a gzip stream")
        rest: bytes | memoryview = data[start : start + INPUT_PIECE]
        more = True
        while more:
            try:
                piece = stream.decompress(rest, OUTPUT_PIECE)
            except zlib.error as error:
                raise invalid(f"not a gzip stream: {error}") from error
            if piece:
                yield piece
            rest = stream.unconsumed_tail
            # A full piece means that zlib may hold more output even after the last input.
            more = len(rest) > 0 or len(piece) == OUTPUT_PIECE
    if not stream.eof:
        raise invalid("a gzip stream ends early")
    if stream.unused_data:
        raise invalid(f"{len(stream.unused_data)} bytes follow a gzip stream")


def compress(data: bytes, level: int) -> bytes:
    return zlib.compress(data, level, GZIP)
