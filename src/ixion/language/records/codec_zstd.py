"""zstd by the standard library (Python 3.14) or its backport: one frame, which must end where the batch does."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any, Final

from ixion.language.records.faults import invalid, unsupported_codec

OUTPUT_PIECE: Final = 256 * 1024
# 128 MiB, which level 22 declares for a stream of unknown size. Memory is touched only as output fills it.
WINDOW_LOG_MAX: Final = 27


def chunks(data: memoryview) -> Iterator[bytes]:
    library = load()
    stream = library.ZstdDecompressor(options={library.DecompressionParameter.window_log_max: WINDOW_LOG_MAX})
    rest: bytes | memoryview = data
    while True:
        try:
            piece = stream.decompress(rest, OUTPUT_PIECE)
        except library.ZstdError as error:
            raise invalid(f"not a zstd frame: {error}") from error
        rest = b""
        if piece:
            yield piece
        if stream.eof:
            break
        if stream.needs_input:
            raise invalid("a zstd frame ends early")
    if stream.unused_data:
        raise invalid(f"{len(stream.unused_data)} bytes follow a zstd frame")


def compress(data: bytes, level: int) -> bytes:
    framed: bytes = load().compress(data, level)
    return framed


def load() -> Any:
    try:
        if sys.version_info >= (3, 14):
            from compression import zstd
        else:
            from backports import zstd
    except ImportError as error:
        raise unsupported_codec("zstd needs the package backports.zstd, which is not installed") from error
    return zstd
