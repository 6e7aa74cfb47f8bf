"""What the command line does not show of the administration: records deleted, topics checked and placed."""

from __future__ import annotations

import pytest

from ixion.clients.cluster import Cluster
from ixion.clients.metadata import TopicPartition
from ixion.clients.offsets import EARLIEST, LATEST, delete_records, list_offsets
from ixion.clients.producer import Producer
from ixion.clients.topics import create_topic, list_topics
from ixion.model.errors import ErrorCode, KafkaError
from ixion.testing import Broker

PLACES = [TopicPartition("orders", number) for number in range(2)]


def test_records_are_deleted_up_to_an_offset_or_all_of_them() -> None:
    with Broker() as broker, Cluster(broker.bootstrap) as cluster:
        broker.create_topic("orders", 2)
        with Producer(broker.bootstrap) as producer:
            for number in range(20):
                producer.send("orders", b"%d" % number, partition=number % 2)
        assert delete_records(cluster, {PLACES[0]: 4, PLACES[1]: -1}) == {PLACES[0]: 4, PLACES[1]: 10}
        assert list_offsets(cluster, PLACES, EARLIEST) == {PLACES[0]: 4, PLACES[1]: 10}
        assert list_offsets(cluster, PLACES, LATEST) == {PLACES[0]: 10, PLACES[1]: 10}
        with pytest.raises(KafkaError, match="orders-0: the offset is below the log start") as caught:
            delete_records(cluster, {PLACES[0]: 11})
        assert caught.value.code is ErrorCode.OFFSET_OUT_OF_RANGE


def test_a_topic_is_checked_without_being_made_and_made_as_placed() -> None:
    with Broker() as broker, Cluster(broker.bootstrap) as cluster:
        assert create_topic(cluster, "orders", partitions=2, validate_only=True) is None
        assert list_topics(cluster) == []
        (node,) = cluster.nodes(cluster.deadline())
        made = create_topic(cluster, "orders", assignment=[[node.node_id], [node.node_id]])
        assert made is not None
        assert [part.replicas for part in made.partitions] == [(node.node_id,)] * 2
        with pytest.raises(KafkaError, match="topic 'other'"):
            create_topic(cluster, "other", assignment=[[node.node_id + 1]])
