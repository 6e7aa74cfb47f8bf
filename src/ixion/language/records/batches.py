"""Walks from batch to batch through a buffer that holds several.

`iter_batches` is for bytes that must be whole, as in a produce request: a torn batch or a wrong length is an error.
`iter_complete_batches` is for the tail of a file or of a fetch response, which may stop anywhere: it ends at the first
batch that is not complete.
"""

from __future__ import annotations

from collections.abc import Iterator

from librt.strings import read_i32_be

from ixion._native import i64
from ixion.language.records.batch import BatchView
from ixion.language.records.faults import check_magic, corrupt
from ixion.language.records.layout import (
    BATCH_LENGTH,
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAGIC,
    MAGIC_PREFIX,
    MIN_BATCH_LENGTH,
    Buffer,
)


def iter_batches(buffer: Buffer, position: int = 0) -> Iterator[BatchView]:
    """Yield every batch; raise KafkaError (CORRUPT_MESSAGE) unless the last one ends with the buffer."""
    end = len(buffer)
    while position < end:
        view = BatchView(buffer, position)
        if not view.is_complete:
            raise corrupt(
                f"a batch at byte {position} claims {view.size_in_bytes} bytes; only {end - position} are left"
            )
        yield view
        position += view.size_in_bytes


def iter_complete_batches(buffer: Buffer, position: int = 0) -> Iterator[BatchView]:
    """Yield batches up to the first incomplete one. An impossible length is an error."""
    end = len(buffer)
    while end - position >= LOG_OVERHEAD:
        if not has_complete_batch(buffer, position):
            return
        view = BatchView(buffer, position)
        yield view
        position += view.size_in_bytes


def has_complete_batch(buffer: Buffer, position: int) -> bool:
    """Whether a whole batch starts at `position`; KafkaError if more bytes could not make it a batch."""
    head = bytes(buffer[position : position + HEADER_SIZE])
    if len(head) >= MAGIC_PREFIX:
        check_magic(head[MAGIC])
    if len(head) < LOG_OVERHEAD:
        return False
    length = i64(read_i32_be(head, BATCH_LENGTH))
    if length < MIN_BATCH_LENGTH:
        raise corrupt(f"a batch length of {length} at byte {position} is below the {MIN_BATCH_LENGTH} of a header")
    return position + LOG_OVERHEAD + length <= len(buffer)
