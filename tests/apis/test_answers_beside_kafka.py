"""Apache Kafka 4.3 gives the same answers, hundreds in a row, but for a few of which we know why."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from devtools.kafka import RealKafka
from devtools.parts import need
from ixion.language.protocol.messages.k02_list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from ixion.language.protocol.messages.k10_find_coordinator import FindCoordinatorRequest
from ixion.language.protocol.messages.k19_create_topics import CreatableTopic, CreateTopicsRequest
from ixion.language.protocol.registry import ApiKey
from ixion.testing import Broker
from tests.apis import group_script, txn_script
from tests.apis.group_talk import TOPIC
from tests.apis.raw import Raw

pytestmark = pytest.mark.skipif(
    os.environ.get("IXION_EXPECT") == "interpreted", reason="a broker of Apache Kafka: once is enough, compiled"
)

# A commit that comes after the coordinator has aborted: KAFKA-20785 made it PRODUCER_FENCED, after 4.3.
CHANGED = [
    ("end new 0 True v5: ('INVALID_TXN_STATE', False, -1)", "end new 0 True v5: ('PRODUCER_FENCED', False, -1)"),
]


JOINS = "{'rebalance_timeout_ms': 30000, 'subscribed_topic_names': ('read',), 'instance_id': 'i'}"
GROUPS_DIFFERENT = [
    # Kafka makes a group for a join that it then refuses, lists it, and deletes it when asked to. Nothing of it is in
    # the log, it has no member, and a client could create many of them by requests that never succeed: we create none.
    ("list () (): ('NONE', [('bad', '', 'Empty', 'classic')])", "list () (): ('NONE', [])"),
    (
        "delete ('odd', 'bad'): [('bad', 'NONE'), ('odd', 'NONE')]",
        "delete ('odd', 'bad'): [('bad', 'GROUP_ID_NOT_FOUND'), ('odd', 'NONE')]",
    ),
    # With Kafka a member that reads nothing and joins after another has left takes everything from the others: it is
    # counted among them as if it read the same, and the range assignor asks the first of them what all read.
    (
        "beat n2 b 2 v1 (0, 1, 2, 3) {}: ('NONE', 'm24', 2, [])",
        "beat n2 b 2 v1 (0, 1, 2, 3) {}: ('NONE', 'm24', 3, None)",
    ),
    # A static member that missed the answer to its join joins once more, under the same id. Kafka takes it for another
    # that wants its name, on which clients give up; dynamic members may do so.
    (
        f"beat s a 0 v1 () {JOINS}: ('UNRELEASED_INSTANCE_ID', 'none', 0, None)",
        f"beat s a 0 v1 () {JOINS}: ('NONE', 'm23', 2, [[0, 1, 2, 3]])",
    ),
]
SETTINGS = {
    "offsets.topic.num.partitions": "1",
    "transaction.state.log.num.partitions": "1",
    "group.initial.rebalance.delay.ms": "0",
    "group.max.size": "3",
}
AT_ONCE = {"group.consumer.assignment.interval.ms": "0", "group.consumer.min.assignment.interval.ms": "0"}


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealKafka]:
    need("kafka-4.3.0")
    data = tmp_path_factory.mktemp("kafka")
    with RealKafka("4.3.0", data, heap="512m", properties={**SETTINGS, **AT_ONCE}) as running:
        yield running


@pytest.fixture(scope="module")
def ixion() -> Iterator[Broker]:
    with Broker(SETTINGS) as running:
        yield running


def make_ready(raw: Raw, name: str, partitions: int) -> bytes:
    """A topic, of which this returns the id, with its leaders, and both coordinators."""
    topic = CreatableTopic(name=name, num_partitions=partitions, replication_factor=1, assignments=(), configs=())
    request = CreateTopicsRequest(topics=(topic,), timeout_ms=10_000, validate_only=False)
    (made,) = raw.ask(ApiKey.CREATE_TOPICS, 7, request).topics
    assert made.error_code == 0
    for key_type in (0, 1):
        find = FindCoordinatorRequest(key="x", key_type=key_type)
        while raw.ask(ApiKey.FIND_COORDINATOR, 2, find).error_code:
            time.sleep(0.1)  # Kafka makes its internal topics while the client waits
    ends = tuple(ListOffsetsPartition(partition_index=number, timestamp=-1) for number in range(partitions))
    wanted = ListOffsetsRequest(
        replica_id=-1, isolation_level=0, topics=(ListOffsetsTopic(name=name, partitions=ends),)
    )
    while any(each.error_code for each in raw.ask(ApiKey.LIST_OFFSETS, 7, wanted).topics[0].partitions):
        time.sleep(0.1)  # and says that a topic is there before it is led
    topic_id: bytes = made.topic_id
    return topic_id


def side_by_side(talk: Callable[[str], list[str]], *bootstraps: str) -> list[list[str]]:
    """Each conversation waits for rebalances and sessions, so they take place at the same time."""
    with ThreadPoolExecutor() as threads:
        return list(threads.map(talk, bootstraps))


def test_every_answer_about_groups_is_kafkas(kafka: RealKafka, ixion: Broker) -> None:
    def talk(bootstrap: str) -> list[str]:
        with Raw(bootstrap) as raw, Raw(bootstrap) as other:
            return group_script.converse(raw, other, make_ready(raw, TOPIC, 4))

    theirs, ours = side_by_side(talk, kafka.bootstrap, ixion.bootstrap)
    assert len(ours) > 700
    assert len(ours) == len(theirs)
    assert [pair for pair in zip(theirs, ours, strict=True) if pair[0] != pair[1]] == GROUPS_DIFFERENT


def test_every_answer_about_transactions_is_kafkas(kafka: RealKafka, ixion: Broker) -> None:
    def talk(bootstrap: str) -> list[str]:
        with Raw(bootstrap) as raw:
            make_ready(raw, "t", 3)
            return txn_script.converse(raw)

    theirs, ours = side_by_side(talk, kafka.bootstrap, ixion.bootstrap)
    assert len(ours) > 90
    assert len(ours) == len(theirs)
    assert [pair for pair in zip(theirs, ours, strict=True) if pair[0] != pair[1]] == CHANGED
