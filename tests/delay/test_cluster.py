"""A11 with three brokers and a real client: leaders are killed while they accept and deliver delayed records.

`make soak-delay` kills them more often.
"""

from __future__ import annotations

import os
import threading
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Callable
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka import KafkaError as Fault

from ixion.testing import Broker, Cluster

FAILOVERS = int(os.environ.get("IXION_DELAY_FAILOVERS", "2"))
PATIENCE_S = 120
SETTINGS = {"replica.fetch.backoff.ms": 20, "replica.fetch.wait.max.ms": 100, "min.insync.replicas": 2}
MODE: dict[str, Any] = {"delivery.delay.mode": "record"}
LONGEST_MS = 800


class Sending:
    """Sends delayed records on a thread until it is stopped; knows which were acknowledged.

    Every fifth is to be delivered at once; a schedule topic takes none of these.
    """

    def __init__(self, cluster: Cluster, topic: str = "t") -> None:
        self._topic = topic
        self.acknowledged: set[bytes] = set()
        self.refused: list[str] = []
        self._stop = threading.Event()
        self._producer = Producer(
            {
                "bootstrap.servers": ",".join(member.bootstrap for member in cluster.brokers.values()),
                "enable.idempotence": True,
                "retry.backoff.ms": 20,
                "reconnect.backoff.max.ms": 200,
                "topic.metadata.refresh.interval.ms": 500,
            }
        )
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        number = 0
        while not self._stop.is_set() or number < 200:
            value = b"%d" % number
            delay_ms = number * 7919 % LONGEST_MS
            headers: dict[str, Any] = (
                {"x-deliver-after-ms": b"%d" % delay_ms} if number % 5 or self._topic != "t" else {}
            )
            self._producer.produce(self._topic, value, headers=headers, partition=0, on_delivery=self._delivered)
            self._producer.poll(0.002)
            number += 1
        self._producer.flush(PATIENCE_S)

    def _delivered(self, error: Fault | None, message: object) -> None:
        if error is None:
            self.acknowledged.add(bytes(message.value()))  # type: ignore[attr-defined]
        else:
            self.refused.append(str(error))

    def more(self, count: int) -> Callable[[], bool]:
        """Whether so many more than now are acknowledged."""
        wanted = len(self.acknowledged) + count
        return lambda: len(self.acknowledged) >= wanted

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()


def ready(member: Broker) -> bool:
    """A sibling is no replica that could be out of sync."""
    try:
        with urllib.request.urlopen(member.metrics_url.replace("/metrics", "/readyz"), timeout=60) as answer:
            return bool(answer.status == 200)
    except urllib.error.HTTPError:
        return False


def read_until(cluster: Cluster, wanted: set[bytes], sent_to: str = "t") -> list[tuple[bytes, int]]:
    """Each value that `t` delivered until all that are wanted were, and how early it came, in milliseconds."""
    consumer = Consumer({"bootstrap.servers": cluster.bootstrap, "group.id": "g", "enable.auto.commit": False})
    consumer.assign([TopicPartition("t", 0, 0)])
    found: list[tuple[bytes, int]] = []
    missing = set(wanted)
    deadline = time.monotonic() + PATIENCE_S
    while missing:
        message = consumer.poll(1)
        assert time.monotonic() < deadline, f"{len(missing)} did not come"
        if message is not None and message.error() is None:
            value = bytes(message.value() or b"")
            due = dict(message.headers() or []).get("x-scheduled-for")
            found.append((value, 0 if due is None else int(due) - int(time.time() * 1000)))
            missing.discard(value)
    # Everything that could be delivered twice comes before this one.
    last = Producer({"bootstrap.servers": cluster.bootstrap})
    last.produce(sent_to, b"last", headers=[("x-deliver-after-ms", b"%d" % (LONGEST_MS + 200))], partition=0)
    assert last.flush(PATIENCE_S) == 0
    while True:
        message = consumer.poll(1)
        assert time.monotonic() < deadline + PATIENCE_S
        if message is not None and message.error() is None:
            if message.value() == b"last":
                break
            found.append((bytes(message.value() or b""), 0))
    consumer.close()
    return found


def test_a11_leaders_that_are_killed_lose_double_and_hurry_nothing() -> None:
    with Cluster(3, SETTINGS, metrics=True) as cluster:
        cluster.create_topic("t", 1, 3, **MODE)
        sending = Sending(cluster)
        try:
            for _ in range(FAILOVERS):
                cluster.wait(sending.more(100), "records are acknowledged")
                leader = cluster.leader("t")
                cluster.kill(leader)
                cluster.wait(sending.more(20), "the next leader takes records")
                cluster.restart(leader)
                cluster.wait(lambda: len(cluster.isr("t")) == 3, "all replicas are in sync")
        finally:
            sending.stop()
        assert sending.refused == []
        cluster.wait(lambda: all(ready(member) for member in cluster.brokers.values()), "every broker is ready")
        found = read_until(cluster, sending.acknowledged)
    counted = Counter(value for value, _ in found)
    assert [value for value, times in counted.items() if times > 1] == []
    assert sending.acknowledged <= counted.keys()
    assert max(early_ms for _, early_ms in found) <= 0


def test_a11_a_schedule_topic_and_its_target_whose_leaders_are_killed_in_turn() -> None:
    """Their leaders are on different brokers: a delivery is a produce over the network."""
    with Cluster(3, SETTINGS, metrics=True) as cluster:
        cluster.create_topic("t", 1, 3)
        cluster.create_topic("later", 1, 3, **MODE, **{"delivery.delay.target": "t"})
        if cluster.leader("later") == cluster.leader("t"):
            move_leader(cluster, "later")
        sending = Sending(cluster, "later")
        try:
            for number in range(2 * FAILOVERS):
                cluster.wait(sending.more(100), "records are acknowledged")
                leader = cluster.leader("later" if number % 2 else "t")
                cluster.kill(leader)
                cluster.wait(sending.more(20), "the next leader takes records")
                cluster.restart(leader)
                for topic in ("t", "later"):
                    cluster.wait(lambda topic=topic: len(cluster.isr(topic)) == 3, "all replicas are in sync")  # type: ignore[misc]
        finally:
            sending.stop()
        assert sending.refused == []
        found = read_until(cluster, sending.acknowledged, "later")
    counted = Counter(value for value, _ in found)
    assert [value for value, times in counted.items() if times > 1] == []
    assert counted.keys() == sending.acknowledged
    assert max(early_ms for _, early_ms in found) <= 0


def move_leader(cluster: Cluster, topic: str) -> None:
    """Another broker leads from now on; the first one comes back as a follower."""
    leader = cluster.leader(topic)
    cluster.kill(leader)
    cluster.wait(lambda: cluster.leader(topic) not in (leader, -1, None), "another broker leads")
    cluster.restart(leader)
    cluster.wait(lambda: len(cluster.isr(topic)) == 3, "all replicas are in sync")
