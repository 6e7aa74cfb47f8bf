"""Elections, failed log directories and in-sync replicas."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from ixion.broker.controller.planning import NewTopic
from ixion.language.model.errors import ErrorCode
from tests.controller.realm import Realm, create, state
from tests.replica.world import codes

T = TypeVar("T")


def test_elections(realm: Realm) -> None:
    realm.start()
    create(realm, NewTopic(name="t"))
    keys = [("t", 0), ("none", 0)]
    for unclean in (False, True):
        assert realm.run(realm.controller.leaders.elect(keys, unclean)) == {
            ("t", 0): ErrorCode.ELECTION_NOT_NEEDED,
            ("none", 0): ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        }


def test_a_failed_directory_leaves_its_partitions_without_a_leader(realm: Realm) -> None:
    realm.start()
    create(realm, NewTopic(name="t"))
    waiting = realm.world.fetch()
    partition = realm.world.replicas.partition("t", 0)
    assert partition is not None
    partition.log.directory.fail("reading", OSError(5, "Input/output error"))
    realm.run(realm.controller.leaders.directory_failed(partition.log.directory.path))
    found = realm.image.topics["t"].partitions[0]
    assert (found.leader, found.leader_epoch, found.offline) == (-1, 1, (1,))
    assert state(realm) == (-1, 1)
    assert [result.code for result in waiting] == [ErrorCode.KAFKA_STORAGE_ERROR]
    assert codes(realm.world.produce()) == [ErrorCode.KAFKA_STORAGE_ERROR]


def test_in_sync_replicas_are_written_down_before_they_count(tmp_path: Path) -> None:
    realm = Realm(tmp_path, brokers=(1, 2))
    try:
        realm.start()
        create(realm, NewTopic(name="t", assignment={0: (1, 2)}))
        partition = realm.world.replicas.partition("t", 0)
        assert partition is not None

        async def later(work: Callable[[], object]) -> None:
            work()
            while partition._isr_wanted is not None:
                await asyncio.sleep(0)

        realm.world.clock.advance(10_001)
        over = realm.world.produce(timeout_ms=100_000)
        realm.run(later(realm.world.replicas.shrink_isr))
        assert (partition.isr, realm.image.topics["t"].partitions[0].isr) == ((1,), (1,))
        assert codes(over) == [ErrorCode.NONE]
        realm.run(later(lambda: realm.world.follower_fetches(2, 1)))
        assert (partition.isr, realm.image.topics["t"].partitions[0].isr) == ((1, 2), (1, 2))
    finally:
        realm.close()
