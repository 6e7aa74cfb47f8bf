"""What a start makes of the tree and the logs that it finds, after a clean stop and after a crash."""

from __future__ import annotations

from typing import Any, TypeVar

import pytest

from ixion.broker.controller.planning import NewTopic
from ixion.broker.controller.topic_nodes import operations_to_create
from ixion.broker.metadata import paths
from ixion.broker.metadata.ensure import ensure
from ixion.broker.metadata.image import PartitionImage, TopicImage
from ixion.broker.metadata.node import Delete
from ixion.language.model.errors import ErrorCode
from tests.controller.realm import Realm, create, state
from tests.metadata.awaited import Awaited, run
from tests.replica.world import codes

T = TypeVar("T")


def test_a_clean_restart_keeps_the_epochs_and_an_unclean_one_raises_them(realm: Realm) -> None:
    realm.start()
    create(realm, NewTopic(name="t"))
    topic_id = realm.image.topics["t"].topic_id
    realm.world.produce(b"a", b"b")
    assert (realm.image.controller_epoch, state(realm)) == (1, (1, 0))
    realm.crash()
    realm.start(unclean=False)
    assert (realm.image.controller_epoch, state(realm)) == (2, (1, 0))
    realm.crash()
    realm.start(unclean=True)
    assert (realm.image.controller_epoch, state(realm)) == (3, (1, 1))
    partition = realm.world.replicas.partition("t", 0)
    assert partition is not None
    assert (partition.leader_epoch, partition.log.end_offset, partition.log.high_watermark) == (1, 2, 2)
    assert realm.image.topics["t"].topic_id == topic_id
    (result,) = realm.world.fetch(epoch=0)
    assert result.code == ErrorCode.FENCED_LEADER_EPOCH


def test_a_crash_after_the_tree_and_before_the_logs(realm: Realm) -> None:
    """The tree has the topic, so the next start makes what is missing."""
    realm.start()
    topic = TopicImage(
        name="t",
        topic_id=b"i" * 16,
        partitions=[PartitionImage(number=0, leader=1, leader_epoch=0, isr=(1,), replicas=(1,))],
        config={"retention.ms": "77"},
    )
    realm.session.multi(operations_to_create(topic, 1))
    realm.crash()
    realm.start(unclean=True)
    assert realm.image.topics["t"].config == {"retention.ms": "77"}
    assert codes(realm.world.produce()) == [ErrorCode.NONE]


def test_a_crash_after_the_topic_and_before_its_partition_states(realm: Realm) -> None:
    """As Kafka's own controller may leave it: assignment written, leaders not yet chosen."""
    realm.start()
    create(realm, NewTopic(name="t", partitions=2))
    where = paths.partition_state("t", 1)
    realm.session.multi([Delete(where), Delete(paths.partition("t", 1))])
    realm.crash()
    realm.start()
    assert codes(realm.world.produce(number=1)) == [ErrorCode.NONE]
    assert state(realm, "t", 1) == (1, 0)


@pytest.mark.parametrize("logs_gone", [False, True])
def test_a_crash_in_the_middle_of_a_deletion(realm: Realm, logs_gone: bool) -> None:
    realm.start()
    create(realm, NewTopic(name="t", partitions=2), NewTopic(name="kept"))
    realm.world.produce(topic="kept")
    run(ensure(Awaited(realm.session), [paths.delete_topic("t")]))
    if logs_gone:
        for number in (0, 1):
            realm.world.logs.delete("t", number)
    realm.crash()
    realm.start(unclean=True)
    assert list(realm.image.topics) == ["kept"]
    assert realm.session.children(paths.TOPICS) == ["kept"]
    assert realm.session.children(paths.DELETE_TOPICS) == []
    assert realm.session.exists(paths.config("topics", "t")) is None
    assert realm.folders() == ["kept-0", "t-0-delete", "t-1-delete"]
    assert len(realm.world.fetch(topic="kept")[0].records) > 0


def test_logs_of_no_topic_are_set_aside_and_kept(realm: Realm) -> None:
    realm.start()
    create(realm, NewTopic(name="t"))
    realm.world.logs.create("lost", 3)
    realm.world.logs.create("t", 7)
    realm.crash()
    realm.start()
    assert realm.folders() == ["lost-3-stray", "t-0", "t-7-stray"]
    realm.crash()
    realm.start()
    assert realm.folders() == ["lost-3-stray", "t-0", "t-7-stray"]


def test_the_log_of_an_earlier_topic_of_the_same_name_is_set_aside(realm: Realm) -> None:
    realm.start()
    create(realm, NewTopic(name="t"))
    realm.world.produce()
    realm.session.multi([*_forget(realm, "t")])
    realm.session.multi(
        operations_to_create(
            TopicImage(
                name="t",
                topic_id=b"n" * 16,
                partitions=[PartitionImage(number=0, leader=1, leader_epoch=0, isr=(1,), replicas=(1,))],
                config={},
            ),
            1,
        )
    )
    realm.crash()
    realm.start()
    assert realm.folders() == ["t-0", "t-0-stray"]
    (result,) = realm.world.produce()
    assert (result.code, result.first_offset) == (ErrorCode.NONE, 0)


def _forget(realm: Realm, name: str) -> list[Any]:
    from ixion.broker.controller.topic_nodes import operations_to_delete

    return run(operations_to_delete(Awaited(realm.session), name))


def test_a_partition_whose_brokers_are_all_gone_has_no_leader(realm: Realm) -> None:
    realm.start()
    partition = PartitionImage(number=0, leader=2, leader_epoch=6, isr=(2,), replicas=(2, 3))
    topic = TopicImage(name="t", topic_id=b"i" * 16, partitions=[partition], config={})
    realm.session.multi(operations_to_create(topic, 1))
    realm.crash()
    realm.start()
    found = realm.image.topics["t"].partitions[0]
    assert (found.leader, found.leader_epoch, found.isr, found.offline) == (-1, 7, (2,), (2, 3))
    assert codes(realm.world.produce()) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
