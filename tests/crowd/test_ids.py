"""Very many members, groups, transactional ids and producer ids, over the wire: limits hold, memory is bounded, and a
broker that finds all of that in its logs starts again. `make soak-crowd` sends ten thousand and a hundred thousand."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.messages.k10_find_coordinator import FindCoordinatorRequest
from ixion.language.protocol.messages.k19_create_topics import CreatableTopic, CreateTopicsRequest
from ixion.language.protocol.registry import ApiKey
from tests.apis.raw import Raw
from tests.broker.served import Served
from tests.crowd.ids import classic_members, consumers, groups, producer_ids, transactional_ids, transactions
from tests.hostile.witness import memory_mb

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads the resident set from /proc")

MOST = 200  # members of a group
SETTINGS = [f"group.max.size={MOST}", f"group.consumer.max.size={MOST}", "group.initial.rebalance.delay.ms=500"]
WORDS = [word for setting in SETTINGS for word in ("--set", setting)]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("ids")


@pytest.fixture(scope="module")
def served(home: Path) -> Iterator[Served]:
    with Served(home, *WORDS) as running, Raw(running.bootstrap) as raw:
        prepare(raw)
        yield running
        if running.process.poll() is None:  # a test may have killed it
            running.stop_without_stalls()


@pytest.fixture
def raw(served: Served) -> Iterator[Raw]:
    with Raw(served.bootstrap) as client:
        yield client


def prepare(raw: Raw) -> None:
    """Topics, and the coordinators are there."""
    topics = tuple(
        CreatableTopic(name=name, num_partitions=10, replication_factor=1, assignments=(), configs=())
        for name in ("t", "u", "v", "w")
    )
    raw.ask(ApiKey.CREATE_TOPICS, 4, CreateTopicsRequest(topics=topics, timeout_ms=10_000, validate_only=False))
    for kind in (0, 1):
        while raw.ask(ApiKey.FIND_COORDINATOR, 2, FindCoordinatorRequest(key="x", key_type=kind)).error_code:
            time.sleep(0.01)


def test_a_consumer_group_takes_no_more_than_its_limit(raw: Raw) -> None:
    codes = consumers(raw, 500, lambda _: "one")
    assert codes == {ErrorCode.NONE: MOST, ErrorCode.GROUP_MAX_SIZE_REACHED: 500 - MOST}


def test_a_classic_group_takes_no_more_than_its_limit(served: Served) -> None:
    joined, synced = classic_members(served.bootstrap, 250, lambda _: "classic")
    assert joined == {ErrorCode.NONE: MOST, ErrorCode.GROUP_MAX_SIZE_REACHED: 50}
    assert synced == {ErrorCode.NONE: MOST}


def test_subscriptions_of_ten_megabytes(served: Served, raw: Raw) -> None:
    before, there = memory_mb(served.process.pid), groups(raw)
    names = tuple(f"{number:0>240}" for number in range(40_000))
    codes = consumers(raw, 6, lambda n: f"large {n}", subscribed_topic_names=names)
    assert codes == {ErrorCode.INVALID_REQUEST: 6}
    assert memory_mb(served.process.pid) - before <= 50
    assert groups(raw) == there, "a refused member leaves no group behind"


def test_what_is_there_in_great_number_is_there_after_a_crash(served: Served, home: Path, raw: Raw) -> None:
    pid = served.process.pid
    before, there = memory_mb(pid), groups(raw)
    assert consumers(raw, 600, lambda n: f"group {n}") == {ErrorCode.NONE: 600}
    assert transactional_ids(raw, 1_000) == {ErrorCode.NONE: 1_000}
    assert producer_ids(raw, 1_000) == {ErrorCode.NONE: 1_000}
    assert memory_mb(pid) - before <= 40
    assert (groups(raw), transactions(raw)) == (there + 600, 1_000)
    served.stop(signal.SIGKILL)
    with Served(home, *WORDS) as again, Raw(again.bootstrap) as asks:
        while min(groups(asks), transactions(asks)) < 0:
            time.sleep(0.01)
        assert (groups(asks), transactions(asks)) == (there + 600, 1_000)
        codes = consumers(asks, 1, lambda _: "one", member_epoch=2**31 - 1)
        assert codes == {ErrorCode.FENCED_MEMBER_EPOCH: 1}, "it is known"
        assert producer_ids(asks, 1_000) == {ErrorCode.NONE: 1_000}, "as repetitions"
        assert memory_mb(again.process.pid) <= before + 40
