"""Brokers of a `Cluster` are killed, paused, cut off and restarted at random while records are written.

Every call ends or says what it waits for, and every acknowledged record is there at the end, once and in order. More
of it: IXION_CLUSTER_SEEDS=1-50 IXION_CLUSTER_STEPS=20 pytest tests/testing/stress.py
"""

from __future__ import annotations

import os
import random
import threading
from collections.abc import Callable
from functools import partial
from typing import Final

import pytest

from ixion.clients import Consumer, Producer, TopicPartition
from ixion.testing import Cluster

BROKERS: Final = (1, 2, 3)
STEPS: Final = int(os.environ.get("IXION_CLUSTER_STEPS", "8"))
SETTINGS: Final = {
    "zookeeper.session.timeout.ms": 6_000,
    "replica.lag.time.max.ms": 2_000,
    "replica.fetch.backoff.ms": 50,
    "replica.fetch.wait.max.ms": 100,
}


def seeds() -> list[int]:
    first, _, last = os.environ.get("IXION_CLUSTER_SEEDS", "1-2").partition("-")
    return list(range(int(first), int(last or first) + 1))


class Writer(threading.Thread):
    """Writes until it is asked to stop; one record after the other is acknowledged by acks=all."""

    def __init__(self, bootstrap: str) -> None:
        super().__init__(name="writer", daemon=True)
        self.acknowledged: list[bytes] = []
        self.enough = threading.Event()
        self.fault: BaseException | None = None
        self._where = bootstrap

    def has_more_than(self, count: int) -> bool:
        return len(self.acknowledged) > count or self.fault is not None

    def run(self) -> None:
        try:
            with Producer(self._where, acks="all", request_timeout_ms=2_000, delivery_timeout_ms=120_000) as producer:
                while not self.enough.wait(0.002):
                    value = b"%d" % len(self.acknowledged)
                    producer.send("t", value=value, partition=0).result(150)
                    self.acknowledged.append(value)
        except BaseException as error:
            self.fault = error


def step(cluster: Cluster, chance: random.Random) -> str:
    """One thing that goes wrong, or is mended again; what it was."""
    broker = chance.choice(BROKERS)
    other = chance.choice([each for each in BROKERS if each != broker])
    runs, paused = cluster.brokers[broker].running, cluster.brokers[broker].paused

    def restart(chosen: int | None = None) -> None:
        cluster.heal()  # a broker that is cut off from the controller is not known to the others
        cluster.restart(chosen)

    faults: dict[str, Callable[[], None]] = {
        "cut": lambda: cluster.cut(broker, other),
        "heal": cluster.heal,
        "resume": cluster.resume,
        "restart all": restart,
    }
    if runs:
        faults |= {
            "kill": lambda: cluster.kill(broker),
            "kill, expires later": lambda: cluster.kill(broker, expire=False),
            "pause": lambda: cluster.pause(broker),
            "pause and expire": lambda: cluster.pause(broker, expire=True),
            "expire": lambda: cluster.expire(broker),
        }
    if not paused and not any(member.paused for member in cluster.brokers.values()):
        # A paused broker may be the controller, which is then asked for as long as its answer may take.
        faults |= {"restart": lambda: restart(broker)}
        if runs:
            faults |= {"shut down": lambda: cluster.shut_down(broker)}
    what = chance.choice(sorted(faults))
    faults[what]()
    return f"{what} {broker}"


@pytest.mark.parametrize("seed", seeds())
def test_brokers_come_and_go_at_random_and_every_call_ends(seed: int) -> None:
    chance = random.Random(seed)
    done: list[str] = []
    with Cluster(3, SETTINGS, memory=True) as cluster:
        cluster.create_topic("t")
        writer = Writer(cluster.bootstrap)
        writer.start()
        for _ in range(STEPS):
            before = len(writer.acknowledged)
            done.append(step(cluster, chance))
            threading.Event().wait(chance.random() / 10)  # so that the next fault meets what this one set going
            if chance.random() < 0.3 and not any(member.paused for member in cluster.brokers.values()):
                cluster.heal()
                cluster.restart()
                cluster.wait(partial(writer.has_more_than, before), "records are acknowledged again")
        cluster.heal()
        cluster.resume()
        cluster.restart()
        cluster.wait_healthy()
        writer.enough.set()
        writer.join(180)
        assert writer.fault is None, (done, writer.fault)
        with Consumer(cluster.bootstrap, auto_offset_reset="earliest") as consumer:
            place = TopicPartition("t", 0)
            consumer.assign([place])
            end = consumer.end_offsets([place])[place]
            values: list[bytes | None] = []
            while consumer.position(place) < end:
                values += [record.value for record in consumer.poll(1.0)]
        assert values == writer.acknowledged, done
