"""A cluster that an older version of ixion has served keeps its rule until it is moved over."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import Any

import pytest

from ixion.broker.log.kept import FILE_NAME
from ixion.broker.metadata import paths
from ixion.broker.metadata.node import Delete, Set
from ixion.broker.metadata.placement_node import Placement, decode_placement, encode_placement
from ixion.broker.replica.internal_topic import GROUP_OFFSETS
from ixion.broker.startup.broker import Broker as RealBroker
from ixion.broker.startup.errors import StartupError
from ixion.language.protocol.messages.k10_find_coordinator import FindCoordinatorRequest
from ixion.language.protocol.registry import ApiKey
from ixion.testing import Cluster
from tests.apis.group_kit import commit_request
from tests.apis.raw import Raw
from tests.broker.old_placement import OFFSETS, check_places, draw, fetched, older_rule

RETRIED = (14, 15, 16)  # loading, not available, not the coordinator
SETTINGS = {"offsets.topic.num.partitions": OFFSETS}


def placement_in(cluster: Cluster) -> Placement:
    member = next(each for each in cluster.brokers.values() if each.running)
    return decode_placement(member.call(lambda real: real.parts.session.get(paths.PLACEMENT)).data)


def coordinator(cluster: Cluster, group: str, asked: int) -> str:
    with Raw(cluster.brokers[asked].bootstrap) as raw:
        found: Any = None
        while found is None or found.error_code:
            found = raw.ask(ApiKey.FIND_COORDINATOR, 2, FindCoordinatorRequest(key=group, key_type=0))
        return f"{found.host}:{found.port}"


def commit(cluster: Cluster, group: str, offset: int) -> None:
    code = -1
    while code:
        with Raw(coordinator(cluster, group, next(iter(cluster.brokers)))) as raw:
            answer = raw.ask(ApiKey.OFFSET_COMMIT, 7, commit_request(group, {("t", 0): offset}))
            code = answer.topics[0].partitions[0].error_code
        assert code in (0, *RETRIED)


def offset_of(cluster: Cluster, group: str) -> int:
    with Raw(coordinator(cluster, group, next(iter(cluster.brokers)))) as raw:
        return fetched(raw, group)


def all_in_sync(cluster: Cluster) -> bool:
    return all(len(cluster.isr(GROUP_OFFSETS, number)) == len(cluster.brokers) for number in range(OFFSETS))


async def paths_of(real: RealBroker) -> list[str]:
    return real.parts.paths


def test_an_upgrade_broker_by_broker_keeps_the_older_rule() -> None:
    drawn = random.Random(os.urandom(8))
    groups = {draw(drawn, OFFSETS): number for number in range(5)}
    with older_rule():
        cluster = Cluster(2, SETTINGS).start()
    try:
        cluster.create_topic("t", 1)
        for group, offset in groups.items():
            commit(cluster, group, offset)
        for broker in cluster.brokers:
            cluster.restart(broker)
            cluster.wait(lambda: all_in_sync(cluster), "all replicas are in sync")
            assert placement_in(cluster) is Placement.MASKED
            for group in groups:
                assert len({coordinator(cluster, group, number) for number in cluster.brokers}) == 1
        assert {group: offset_of(cluster, group) for group in groups} == groups
    finally:
        cluster.stop()


def test_a_new_cluster_takes_kafkas_rule() -> None:
    with Cluster(2, SETTINGS) as cluster:
        assert placement_in(cluster) is Placement.KAFKA


def test_the_only_replica_of_everything_moves_it() -> None:
    drawn = random.Random(os.urandom(8))
    groups = {draw(drawn, OFFSETS): number for number in range(5)}
    with older_rule():
        cluster = Cluster(1, SETTINGS).start()
    try:
        cluster.create_topic("t", 1)
        for group, offset in groups.items():
            commit(cluster, group, offset)
        cluster.restart(1)
        assert placement_in(cluster) is Placement.KAFKA
        cluster.brokers[1].call(check_places)
        assert {group: offset_of(cluster, group) for group in groups} == groups
    finally:
        cluster.stop()


def test_nobody_serves_what_is_half_moved() -> None:
    """Another broker was killed while it moved: a broker that cannot continue must not start."""
    with Cluster(2, SETTINGS) as cluster:
        cluster.create_topic("t", 1)
        commit(cluster, "g", 1)
        cluster.shut_down(2)
        moving = encode_placement(Placement.MOVING)
        cluster.brokers[1].call(lambda real: real.parts.session.set(paths.PLACEMENT, moving))
        with pytest.raises(StartupError, match="Start the one that has every replica"):
            cluster.brokers[2].start()


def test_a_cluster_of_apache_kafka_keeps_kafkas_rule() -> None:
    """Its brokers write no node of ours, and none of our files."""
    with Cluster(2, SETTINGS) as cluster:
        cluster.create_topic("t", 1)
        commit(cluster, "g", 1)
        directories = cluster.brokers[2].call(paths_of)
        cluster.shut_down(2)

        async def as_kafka_leaves_it(real: Any) -> None:
            path = paths.broker(1)
            members = json.loads((await real.parts.session.get(path)).data)
            members.pop("ixion_kept_since", None)
            await real.parts.session.multi([Delete(paths.PLACEMENT), Set(path, json.dumps(members).encode())])

        cluster.brokers[1].call(as_kafka_leaves_it)
        for directory in directories:
            Path(directory, FILE_NAME).unlink()
        cluster.restart(2)
        assert placement_in(cluster) is Placement.KAFKA
