"""Topics are made and deleted, even if an answer is lost on the way."""

from __future__ import annotations

import pytest

from ixion.clients.cluster import Cluster
from ixion.clients.faults import UnknownTopicError
from ixion.clients.topics import create_topic, delete_topic, list_topics
from ixion.model.errors import ErrorCode, KafkaError
from ixion.protocol.registry import ApiKey
from tests.clients.fake import FakeCluster, Fault


def test_a_topic_comes_and_goes() -> None:
    with FakeCluster() as fakes, Cluster(fakes.bootstrap) as cluster:
        made = create_topic(cluster, "orders", partitions=3)
        assert made is not None
        assert [part.number for part in made.partitions] == [0, 1, 2]
        assert [topic.name for topic in list_topics(cluster)] == ["orders"]
        with pytest.raises(KafkaError, match="topic 'orders': a topic of this name exists") as caught:
            create_topic(cluster, "orders", partitions=3)
        assert caught.value.code is ErrorCode.TOPIC_ALREADY_EXISTS
        delete_topic(cluster, "orders")
        assert list_topics(cluster) == []
        with pytest.raises(UnknownTopicError):
            delete_topic(cluster, "orders")


@pytest.mark.parametrize("fault", [Fault.DROP, Fault.DROP_AFTER, Fault.HALF])
def test_an_answer_that_was_lost_does_not_make_it_fail(fault: Fault) -> None:
    with FakeCluster() as fakes, Cluster(fakes.bootstrap) as cluster:
        fakes.at(1, ApiKey.CREATE_TOPICS, fault)
        fakes.at(1, ApiKey.DELETE_TOPICS, fault)
        assert create_topic(cluster, "orders", partitions=1) is not None
        delete_topic(cluster, "orders")
        assert fakes.count(ApiKey.CREATE_TOPICS) == fakes.count(ApiKey.DELETE_TOPICS) == 2
        assert fakes.leaders == {}
