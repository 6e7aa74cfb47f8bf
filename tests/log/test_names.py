"""Names of folders and files, and which topic names are refused."""

from __future__ import annotations

import pytest

from ixion.broker.log.names import (
    DELETE,
    FUTURE,
    PartitionFolder,
    file_name,
    folder_name,
    marked_folder_name,
    parse_file_name,
    parse_folder_name,
)
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.model.topic_name import check_topic_name


@pytest.mark.parametrize("name", ["orders", "a", "A.b_c-9", "x" * 249, "-", "__consumer_offsets", "..."])
def test_a_legal_topic_name_passes(name: str) -> None:
    check_topic_name(name)
    assert parse_folder_name(folder_name(name, 7)) == PartitionFolder(topic=name, partition=7)


@pytest.mark.parametrize(
    "name", ["", ".", "..", "x" * 250, "a/b", "../etc", "a b", "ä", "a\x00b", "a\nb", "orders\n", "a:b", "*"]
)
def test_an_illegal_topic_name_is_refused_with_its_code(name: str) -> None:
    with pytest.raises(KafkaError) as caught:
        folder_name(name, 0)
    assert caught.value.code == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert repr(name) in str(caught.value)


@pytest.mark.parametrize("partition", [-1, 1 << 31])
def test_an_impossible_partition_is_refused(partition: int) -> None:
    with pytest.raises(KafkaError):
        folder_name("orders", partition)


@pytest.mark.parametrize("mark", [DELETE, FUTURE])
@pytest.mark.parametrize("topic", ["orders", "x" * 249])
def test_the_name_of_a_marked_folder_fits_the_file_system_and_can_be_parsed(topic: str, mark: str) -> None:
    name = marked_folder_name(topic, 12345, mark)
    parsed = parse_folder_name(name)
    assert len(name) <= 255
    assert parsed is not None
    assert topic.startswith(parsed.topic)
    assert (parsed.partition, parsed.mark) == (12345, mark)
    assert marked_folder_name(topic, 12345, mark) != name


@pytest.mark.parametrize(
    "name", ["orders", "orders-", "orders-x", "-delete", "lost+found", "orders-0-delete", "a-0-stray"]
)
def test_other_folders_are_not_partitions(name: str) -> None:
    assert parse_folder_name(name) is None


def test_a_topic_may_look_like_a_partition() -> None:
    assert parse_folder_name("orders-1-2") == PartitionFolder(topic="orders-1", partition=2)


def test_files_are_named_after_their_offset() -> None:
    assert file_name(42, ".log") == "00000000000000000042.log"
    assert parse_file_name("00000000000000000042.timeindex.swap") == (42, ".timeindex.swap")
    assert parse_file_name("leader-epoch-checkpoint") is None
    assert parse_file_name("42.log") is None
