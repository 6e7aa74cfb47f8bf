"""A partition with waiting records is moved to other brokers and back: nothing is lost, doubled or hurried."""

from __future__ import annotations

from collections import Counter

from confluent_kafka import Producer

from ixion.clients import Admin, TopicPartition
from ixion.testing import Cluster
from tests.delay.test_cluster import MODE, PATIENCE_S, SETTINGS, Sending, read_until

LONG_MS = 6_000  # some wait while the partition moves more than once
LONG = [b"long-%d" % number for number in range(50)]


def move(cluster: Cluster, admin: Admin, brokers: list[int]) -> None:
    place = TopicPartition("t", 0)
    assert not admin.alter_partition_reassignments({place: brokers}).faults
    cluster.wait(lambda: not admin.list_partition_reassignments(), f"the partition is on {brokers}", PATIENCE_S)
    cluster.wait(lambda: set(cluster.isr("t")) == set(brokers), f"{brokers} are in sync", PATIENCE_S)


def test_a_partition_that_moves_away_and_back_loses_doubles_and_hurries_nothing() -> None:
    with Cluster(3, {**SETTINGS, "min.insync.replicas": 1}) as cluster:
        cluster.create_topic("t", 1, 2, **MODE)
        cluster.wait(lambda: len(cluster.isr("t")) == 2, "both replicas are in sync")
        home = list(cluster.isr("t"))
        (away,) = set(cluster.brokers) - set(home)
        producer = Producer({"bootstrap.servers": cluster.bootstrap, "enable.idempotence": True})
        for value in LONG:
            producer.produce("t", value, headers=[("x-deliver-after-ms", b"%d" % LONG_MS)], partition=0)
        assert producer.flush(PATIENCE_S) == 0
        sending = Sending(cluster)
        try:
            with Admin(cluster.bootstrap) as admin:
                for brokers in ([away], home, [away, home[1]], [home[0]]):
                    cluster.wait(sending.more(30), "records are acknowledged", PATIENCE_S)
                    move(cluster, admin, brokers)
        finally:
            sending.stop()
        assert sending.refused == []
        found = read_until(cluster, sending.acknowledged | set(LONG))
    counted = Counter(value for value, _ in found)
    assert [value for value, times in counted.items() if times > 1] == []
    assert sending.acknowledged | set(LONG) <= counted.keys()
    assert max(early_ms for _, early_ms in found) <= 0
