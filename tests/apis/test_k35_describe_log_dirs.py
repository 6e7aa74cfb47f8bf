from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from ixion.broker.startup.broker import Broker as RealBroker
from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.messages.k35_describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
)
from ixion.language.protocol.registry import ApiKey
from ixion.testing.broker import Broker
from tests.apis.asking import Asking, versions
from tests.apis.filling import fill


@pytest.fixture
def paths(tmp_path: Path) -> list[str]:
    return [str(tmp_path / "one"), str(tmp_path / "two")]


@pytest.fixture
def broker(paths: list[str]) -> Iterator[Broker]:
    with Broker({"log.dirs": ",".join(paths)}) as running:
        running.create_topic("t", 4)
        fill(running.bootstrap, "t")
        yield running


Wish = tuple[str, tuple[int, ...]]


def ask(asking: Asking, *topics: Wish, version: int = -1) -> dict[str, DescribeLogDirsResult]:
    wanted = tuple(DescribableLogDirTopic(topic=name, partitions=numbers) for name, numbers in topics)
    answer = asking.ask(DescribeLogDirsRequest(topics=wanted or None), DescribeLogDirsResponse, version)
    assert answer.error_code == ErrorCode.NONE
    return {each.log_dir: each for each in answer.results}


def partitions(result: DescribeLogDirsResult) -> dict[tuple[str, int], int]:
    return {
        (topic.name, each.partition_index): each.partition_size for topic in result.topics for each in topic.partitions
    }


def test_all_of_all_directories_in_every_version(paths: list[str], broker: Broker, asking: Asking) -> None:
    for version in versions(ApiKey.DESCRIBE_LOG_DIRS):
        found = ask(asking, version=version)
        assert sorted(found) == paths
        sizes = [partitions(each) for each in found.values()]
        assert sorted(key for each in sizes for key in each) == [("t", number) for number in range(4)]
        assert [len(each) for each in sizes] == [2, 2]
        # Ten batches of one record: 61 bytes of header, some of record.
        assert 700 < sum(size for each in sizes for size in each.values()) < 900
        for result in found.values():
            assert result.error_code == ErrorCode.NONE
            assert all(each.offset_lag == 0 and not each.is_future_key for t in result.topics for each in t.partitions)
            told = version >= 4
            assert (result.total_bytes, result.usable_bytes) != (-1, -1) if told else result.total_bytes == -1
            if told:
                usage = shutil.disk_usage(result.log_dir)
                assert result.total_bytes == usage.total
                assert 0 < result.usable_bytes <= usage.total


def test_only_what_is_asked_for(paths: list[str], broker: Broker, asking: Asking) -> None:
    found = ask(asking, ("t", (1, 9)), ("none", (0,)))
    assert sorted(found) == paths
    assert [key for each in found.values() for key in partitions(each)] == [("t", 1)]


def test_a_lost_directory_is_described_as_offline(paths: list[str], broker: Broker, asking: Asking) -> None:
    async def lose(real: RealBroker) -> None:
        real.parts.logs.directories[0].state.fail("testing", OSError("gone"))

    broker.call(lose)
    found = ask(asking)
    assert found[paths[0]].error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert found[paths[0]].topics == ()
    assert found[paths[1]].error_code == ErrorCode.NONE
