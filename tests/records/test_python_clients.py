"""aiokafka and kafka-python read what we build, and we read what they build."""

from __future__ import annotations

import warnings
from typing import Any

import pytest
from aiokafka.record.default_records import DefaultRecordBatch as AioBatch
from aiokafka.record.default_records import DefaultRecordBatchBuilder as AioBuilder

from ixion.language.records.batch import BatchView
from ixion.language.records.builder import BatchBuilder
from ixion.language.records.compression import Codec
from ixion.language.records.validate import TopicRules, validate_produce

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # kafka-python reads its schemas in a way that newer Pythons frown upon
    from kafka.record.default_records import DefaultRecordBatch as PyBatch
    from kafka.record.default_records import DefaultRecordBatchBuilder as PyBuilder

NOW = 1_700_000_000_000
ROWS: list[tuple[bytes | None, bytes | None, list[tuple[str, bytes]], int]] = [
    (b"key", b"value", [], NOW),
    (None, b"x" * 5_000, [("a", b"1"), ("a", b"")], NOW + 7),
    (b"", None, [("ü", b"\xff")], NOW - 7),
] + [(b"%d" % number, bytes([number]) * 700, [], NOW + number) for number in range(200)]

READERS = {"aiokafka": AioBatch, "kafka-python": PyBatch}
BUILDERS = {"aiokafka": AioBuilder, "kafka-python": PyBuilder}


@pytest.mark.parametrize("codec", list(Codec))
@pytest.mark.parametrize("peer", READERS)
def test_they_read_what_we_build(peer: str, codec: Codec) -> None:
    builder = BatchBuilder(codec=codec, base_offset=40, producer_id=3, producer_epoch=1, base_sequence=9)
    for key, value, headers, timestamp in ROWS:
        builder.append(key, value, headers, timestamp)
    batch: Any = READERS[peer](builder.build())
    assert batch.validate_crc()
    assert (batch.base_offset, batch.producer_id, batch.producer_epoch, batch.base_sequence) == (40, 3, 1, 9)
    read = [(record.key, record.value, [*map(tuple, record.headers)], record.timestamp) for record in batch]
    assert read == ROWS


@pytest.mark.parametrize("codec", list(Codec))
@pytest.mark.parametrize("peer", BUILDERS)
def test_we_read_what_they_build(peer: str, codec: Codec) -> None:
    builder: Any = BUILDERS[peer](
        magic=2,
        compression_type=int(codec),
        is_transactional=1,
        producer_id=3,
        producer_epoch=1,
        base_sequence=9,
        batch_size=10_000_000,
    )
    for offset, (key, value, headers, timestamp) in enumerate(ROWS):
        assert builder.append(offset, timestamp, key, value, headers) is not None
    data = bytes(builder.build())
    view = BatchView(data)
    assert view.crc_is_valid()
    assert view.is_transactional
    assert [(record.key, record.value, record.headers, record.timestamp) for record in view] == ROWS
    result = validate_produce(data, TopicRules(), NOW)
    assert (result.count, result.max_timestamp, result.in_place) == (len(ROWS), NOW + 199, True)
