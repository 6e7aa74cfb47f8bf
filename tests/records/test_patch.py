"""Patches change what they name, and leave a batch whose CRC is right."""

from __future__ import annotations

import pytest

from ixion.language.records.batch import BatchView, TimestampType
from ixion.language.records.builder import BatchBuilder
from ixion.language.records.compression import Codec
from ixion.language.records.patch import patch_max_timestamp, patch_producer
from ixion.language.records.recode import recode


def made(codec: Codec = Codec.NONE) -> bytes:
    builder = BatchBuilder(codec=codec, producer_id=4, producer_epoch=1, base_sequence=9, is_transactional=True)
    builder.append(b"a", b"1" * 200, [("h", b"\xff")], timestamp=50)
    builder.append(b"b", None, timestamp=40)
    return builder.build()


@pytest.mark.parametrize("codec", list(Codec))
def test_log_append_time(codec: Codec) -> None:
    buffer = bytearray(b"??" + made(codec))
    patch_max_timestamp(buffer, 2, TimestampType.LOG_APPEND_TIME, 1234)
    view = BatchView(buffer, 2)
    assert view.crc_is_valid()
    assert view.timestamp_type is TimestampType.LOG_APPEND_TIME
    assert view.is_transactional
    assert [record.timestamp for record in view] == [1234, 1234]
    patch_max_timestamp(buffer, 2, TimestampType.CREATE_TIME, 50)
    assert bytes(buffer[2:]) == made(codec)


def test_a_patch_that_changes_nothing_leaves_a_false_crc_false() -> None:
    buffer = bytearray(made())
    buffer[-1] ^= 1
    patch_max_timestamp(buffer, 0, TimestampType.CREATE_TIME, 50)
    assert not BatchView(buffer).crc_is_valid()


def test_producer_fields() -> None:
    buffer = bytearray(made())
    patch_producer(buffer, 0, 2**40, 3, 2**31 - 1)
    view = BatchView(buffer)
    assert view.crc_is_valid()
    assert (view.producer_id, view.producer_epoch, view.base_sequence, view.last_sequence) == (2**40, 3, 2**31 - 1, 0)


@pytest.mark.parametrize("source", list(Codec))
@pytest.mark.parametrize("target", list(Codec))
def test_another_codec_is_the_same_batch(source: Codec, target: Codec) -> None:
    before = BatchView(made(source))
    after = BatchView(recode(before, target))
    assert after.crc_is_valid()
    assert after.codec is target
    assert after.is_transactional
    assert (after.producer_id, after.base_sequence, after.max_timestamp, after.count) == (4, 9, 50, 2)
    assert [repr(record) for record in after] == [repr(record) for record in before]
    assert [record.headers for record in after] == [record.headers for record in before]
    if target is Codec.NONE:
        assert after.as_view() == memoryview(made())
