"""Stored messages: the version, or the type of the record, in front."""

from __future__ import annotations

import pytest

from ixion.language.protocol import storage
from ixion.language.protocol.flaws import DecodeError, EncodeError, UnsupportedVersionError
from ixion.language.protocol.stored.consumer_protocol import ConsumerProtocolAssignment, TopicPartition
from ixion.language.protocol.stored.offset_commit import OffsetCommitKey, OffsetCommitValue
from ixion.language.protocol.stored.record_types import RecordType

KEY = OffsetCommitKey(group="g", topic="t", partition=3)
VALUE = OffsetCommitValue(offset=5, leader_epoch=2, metadata="m", commit_timestamp=9)


def test_a_key_carries_the_type_of_its_record() -> None:
    encoded = storage.encode_key(1, KEY)
    assert encoded.hex(" ") == "00 01 00 01 67 00 01 74 00 00 00 03"
    assert storage.record_type(encoded) == 1
    assert storage.decode_key(OffsetCommitKey, encoded) == KEY


def test_a_value_carries_its_version() -> None:
    encoded = storage.encode(VALUE, 3)
    assert encoded.hex(" ") == "00 03 00 00 00 00 00 00 00 05 00 00 00 02 00 01 6d 00 00 00 00 00 00 00 09"
    assert storage.decode(OffsetCommitValue, encoded) == VALUE
    assert storage.decode(OffsetCommitValue, storage.encode(VALUE, 0)) == VALUE.replace(leader_epoch=-1)


def test_what_consumers_tell_each_other() -> None:
    assignment = ConsumerProtocolAssignment(
        assigned_partitions=(TopicPartition(topic="t", partitions=(0, 1)),), user_data=None
    )
    assert storage.decode(ConsumerProtocolAssignment, storage.encode(assignment, 3)) == assignment


def test_versions_from_the_future_are_refused() -> None:
    encoded = storage.encode(VALUE, 4)
    with pytest.raises(UnsupportedVersionError, match="OffsetCommitValue version 5 is not supported"):
        storage.decode(OffsetCommitValue, b"\0\5" + encoded[2:])
    with pytest.raises(UnsupportedVersionError, match="OffsetCommitValue version 5 is not supported"):
        storage.encode(VALUE, 5)


@pytest.mark.parametrize("data", [b"", b"\0"])
def test_too_short_for_a_version(data: bytes) -> None:
    with pytest.raises(DecodeError, match="OffsetCommitValue, byte 0: the two bytes in front are missing"):
        storage.decode(OffsetCommitValue, data)
    with pytest.raises(DecodeError, match="the two bytes in front are missing"):
        storage.record_type(data)


def test_damage_is_named() -> None:
    with pytest.raises(DecodeError, match="OffsetCommitValue v3, metadata, byte 16"):
        storage.decode(OffsetCommitValue, storage.encode(VALUE, 3)[:16])
    with pytest.raises(EncodeError, match="OffsetCommitValue v3, offset: 'x' is not an integer"):
        storage.encode(VALUE.replace(offset="x"), 3)


@pytest.mark.parametrize("kind", RecordType, ids=lambda kind: kind.name)
def test_every_type_of_record_has_its_tables(kind: RecordType) -> None:
    title = kind.name.removeprefix("LEGACY_").title().replace("_", "")
    assert (kind.key_table.__name__, kind.value_table.__name__) == (f"{title}Key", f"{title}Value")
    key, value = kind.key_table.blank(), kind.value_table.blank()
    assert storage.decode_key(kind.key_table, storage.encode_key(kind, key)) == key
    for version in range(kind.value_table.within[0], kind.value_table.within[1] + 1):
        assert storage.decode(kind.value_table, storage.encode(value, version)) == value


def test_the_numbers_of_the_types() -> None:
    assert [int(kind) for kind in RecordType] == [*range(9), *range(10, 18), *range(19, 24)]
    assert RecordType(storage.record_type(storage.encode_key(1, KEY))) is RecordType.OFFSET_COMMIT
