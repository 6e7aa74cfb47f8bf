"""gzip by the standard library's zlib: one member, which must end where the batch does."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import Final

from ixion.records.faults import invalid

# wbits for "a gzip header and trailer around a 32 kB window".
GZIP: Final = 31
# zlib hands back the input it did not use as a copy, so it gets the input in pieces too.
INPUT_PIECE: Final = 64 * 1024
OUTPUT_PIECE: Final = 256 * 1024


def chunks(data: memoryview) -> Iterator[bytes]:
    stream = zlib.decompressobj(GZIP)
    for start in range(0, len(data), INPUT_PIECE):
        if stream.eof:
            break
        rest: bytes | memoryview = data[start : start + INPUT_PIECE]
        while len(rest) > 0:
            try:
                piece = stream.decompress(rest, OUTPUT_PIECE)
            except zlib.error as error:
                raise invalid(f"not a gzip stream: {error}") from error
            if piece:
                yield piece
            rest = stream.unconsumed_tail
            consumed = start + INPUT_PIECE - len(rest) - len(stream.unused_data)
    if not stream.eof:
        raise invalid("a gzip stream ends early")
    if consumed < len(data):
        raise invalid(f"{len(data) - consumed} bytes follow a gzip stream")


def compress(data: bytes, level: int) -> bytes:
    return zlib.compress(data, level, GZIP)
