"""Administration of share groups, by both faces, on ixion and Apache Kafka."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import pytest

from ixion.clients import Admin, NewTopic, Producer, ShareConsumer, TopicPartition
from ixion.clients.admin.share_groups import ShareOffset
from ixion.language.model.errors import ErrorCode
from ixion.testing import Broker
from tests.clients.faces import FACES, Face
from tests.servers import ApacheKafka

numbers = itertools.count()


@pytest.fixture(scope="module")
def ixion() -> Iterator[str]:
    with Broker() as broker:
        yield broker.bootstrap


@pytest.fixture(scope="module")
def kafka(apache_kafka: ApacheKafka) -> str:
    return apache_kafka("4.3.0").bootstrap


@pytest.fixture(params=["ixion", "kafka"])
def bootstrap(request: pytest.FixtureRequest) -> str:
    found: str = request.getfixturevalue(request.param)
    return found


@pytest.fixture(params=FACES, ids=lambda face: face.name)
def admin(request: pytest.FixtureRequest, bootstrap: str) -> Iterator[Any]:
    face: Face = request.param
    with face.admin(bootstrap) as made:
        yield made


def altered(admin: Any, group: str, offsets: dict[TopicPartition, int]) -> None:
    """A new topic takes a moment to be known everywhere."""
    for _ in range(100):
        found = admin.alter_share_group_offsets(group, offsets)
        if all(fault.code != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION for fault in found.faults.values()):
            break
    found.check()


def test_the_life_of_a_share_group(bootstrap: str, admin: Any) -> None:
    name = f"shared-{next(numbers)}"
    place, other = TopicPartition(name, 0), TopicPartition(name, 1)
    with Admin(bootstrap) as plain:
        plain.create_topics([NewTopic(name, partitions=2)]).check()
    with Producer(bootstrap) as producer:
        for number in range(6):
            producer.send(name, b"%d" % number, partition=number % 2)
    with ShareConsumer(bootstrap, group=name, topics=[name]) as consumer:
        while not consumer.assignment():
            consumer.poll(0.5)
    altered(admin, name, {place: 0, other: 1})
    offsets = admin.list_share_group_offsets([name]).check()[name]
    assert {where: at.start_offset for where, at in offsets.items()} == {place: 0, other: 1}
    assert {where: at.lag for where, at in offsets.items()} in ({place: 3, other: 2}, {place: -1, other: -1})
    assert isinstance(offsets[place], ShareOffset)
    with ShareConsumer(bootstrap, group=name, topics=[name]) as consumer:
        found = 0
        while found < 5:
            found += len(consumer.poll(5.0))
        consumer.commit()
        described = admin.describe_share_groups([name, "no-such"])
        (member,) = described[name].members
        assert (described[name].kind, described[name].state, described[name].assignor) == ("share", "Stable", "simple")
        assert sorted(member.partitions) == [place, other]
        assert described.faults["no-such"].code == ErrorCode.GROUP_ID_NOT_FOUND
        assert admin.describe_groups([name])[name].kind == "share"
        refused = admin.alter_share_group_offsets(name, {place: 0})
        assert refused.faults[place].code == ErrorCode.NON_EMPTY_GROUP
    only = admin.list_share_group_offsets({name: [other]}).check()[name]
    assert {where: at.lag for where, at in only.items()} == {other: 0}
    assert name in [each.group for each in admin.list_groups(kinds=["share"])]
    deleted = admin.delete_share_group_offsets(name, [name, "no-such"])
    assert list(deleted.done) == [name]
    assert deleted.faults["no-such"].code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert admin.list_share_group_offsets([name]).check()[name] == {}
    admin.delete_groups([name]).check()
    assert admin.describe_groups([name]).faults[name].code == ErrorCode.GROUP_ID_NOT_FOUND
