"""A group coordinator that was replaced without knowing it does not answer stable offsets from before that."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ixion.broker.startup.broker import Broker as RealBroker
from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.messages.k08_offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ixion.language.protocol.messages.k09_offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from ixion.language.protocol.messages.k10_find_coordinator import FindCoordinatorRequest
from ixion.language.protocol.registry import ApiKey
from ixion.testing import Cluster
from tests.apis.raw import Raw

TOPIC = "__consumer_offsets"
SETTINGS = {
    "replica.fetch.wait.max.ms": 100,
    "replica.fetch.backoff.ms": 20,
    "offsets.topic.num.partitions": 1,
    "offsets.topic.replication.factor": 3,
}


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(3, SETTINGS) as made:
        made.create_topic("t")
        with Raw(made.bootstrap.partition(",")[0]) as raw:
            made.wait(lambda: find(raw) == ErrorCode.NONE, "the coordinator is found")
        made.wait(lambda: len(made.isr(TOPIC)) == 3, "three replicas are in sync")
        yield made


def find(raw: Raw) -> int:
    code: int = raw.ask(ApiKey.FIND_COORDINATOR, 2, FindCoordinatorRequest(key="g")).error_code
    return code


def commit(raw: Raw, offset: int) -> int:
    partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset, committed_metadata="")
    topics = (OffsetCommitRequestTopic(name="t", partitions=(partition,)),)
    answer = raw.ask(ApiKey.OFFSET_COMMIT, 8, OffsetCommitRequest(group_id="g", member_id="", topics=topics))
    code: int = answer.topics[0].partitions[0].error_code
    return code


def stable(raw: Raw) -> tuple[ErrorCode, int | None]:
    topics = (OffsetFetchRequestTopics(name="t", partition_indexes=(0,)),)
    request = OffsetFetchRequest(groups=(OffsetFetchRequestGroup(group_id="g", topics=topics),), require_stable=True)
    (group,) = raw.ask(ApiKey.OFFSET_FETCH, 8, request).groups
    return ErrorCode(group.error_code), group.topics[0].partitions[0].committed_offset if group.topics else None


def address(cluster: Cluster, broker: int) -> str:
    return cluster.bootstrap.split(",")[broker - 1]


def test_a_replaced_coordinator_answers_no_stable_offsets(cluster: Cluster) -> None:
    old = cluster.leader(TOPIC)
    with Raw(address(cluster, old)) as to_old:
        cluster.wait(lambda: commit(to_old, 1) == ErrorCode.NONE, "an offset is committed")
        for other in {1, 2, 3} - {old}:
            cluster.cut(old, other)
        cluster.pause(old, expire=True)  # awake, it could become the controller, and leave itself in place
        cluster.wait(lambda: cluster.leader(TOPIC) != old, "another broker leads")
        cluster.resume(old)
        with Raw(address(cluster, cluster.leader(TOPIC))) as to_new:
            cluster.wait(lambda: commit(to_new, 2) == ErrorCode.NONE, "a later offset is committed")
            code, offset = stable(to_old)
            assert code in (ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR)
            assert offset is None
            assert stable(to_new) == (ErrorCode.NONE, 2)
        cluster.heal()
        cluster.wait(lambda: stable(to_old)[0] is ErrorCode.NOT_COORDINATOR, "the old coordinator knows")


def test_a_coordinator_in_doubt_answers_when_its_followers_have_fetched(cluster: Cluster) -> None:
    leader = cluster.leader(TOPIC)

    def lose_lease(real: RealBroker) -> None:
        real.parts.groups.get().doubt._lease = lambda: None

    with Raw(address(cluster, leader)) as raw:
        cluster.wait(lambda: commit(raw, 1) == ErrorCode.NONE, "an offset is committed")
        lose_lease(dict(cluster._reals())[leader])
        assert stable(raw) == (ErrorCode.NONE, 1)
