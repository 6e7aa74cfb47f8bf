"""Gives a batch another codec, for topics whose `compression.type` is not the producer's.

Offsets and timestamps of records are deltas to the header, so the record bytes do not change: they are inflated,
compressed again and put behind a header with another codec, length and CRC. Single records are not parsed.
"""

from __future__ import annotations

from ixion.language.records.batch import BatchView
from ixion.language.records.compression import DEFAULT_LIMITS, Codec, InflateLimits, compress, inflate
from ixion.language.records.layout import ATTRIBUTES, BATCH_LENGTH, CODEC_MASK, HEADER_SIZE, LOG_OVERHEAD
from ixion.language.records.patch import I32, U16, patch_crc


def recode(
    batch: BatchView, codec: Codec, level: int | None = None, limits: InflateLimits = DEFAULT_LIMITS
) -> bytearray:
    """The same batch in `codec`, writable, so that the log can patch in the base offset and leader epoch."""
    records = compress(codec, inflate(batch.codec, batch.payload(), limits), level)
    made = bytearray(batch.as_view()[:HEADER_SIZE])
    made += records
    I32.pack_into(made, BATCH_LENGTH, len(made) - LOG_OVERHEAD)
    U16.pack_into(made, ATTRIBUTES, (batch.attributes & ~CODEC_MASK) | codec)
    patch_crc(made, 0)
    return made
