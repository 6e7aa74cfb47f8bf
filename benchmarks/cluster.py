"""Three brokers beside three of Apache Kafka 3.9.1, both on a real ZooKeeper, with the same librdkafka clients.

All of them share the cores of one machine. Faults are seen by a producer with acks=all that waits for every record: the
longest time without an acknowledgement. The session timeout is the same on both sides, 6 s, and is part of what a
kill costs. It counts from the last time that ZooKeeper heard of the broker, which may be 2 s before the kill: so a
broker is killed when ZooKeeper has just heard of it, and of three kills the median counts. Each round starts a cluster
anew.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from statistics import median

from confluent_kafka.cimpl import NewTopic

from benchmarks.framework import Benchmark, Contender, Goal, Row, Session, fresh
from benchmarks.loads import broker_clients as clients
from benchmarks.loads.cluster_clients import Paused
from benchmarks.loads.cluster_servers import Broker, Three, apache_kafka, cluster, ixion, until

OURS, KAFKA = "ixion", "Apache Kafka 3.9.1"
SIZES = {100: "100 B", 1000: "1 KB"}
MB_OF = {100: 20, 1000: 100}
COUNTS = (1, 6)
SYNCHRONOUS = 3_000
CATCH_UP_MB = 200
MANY = 1_000  # partitions of a topic
KILLS = 3  # of which the median counts
ALL = -1  # acks


def create(three: Three, topic: str, partitions: int, replicas: tuple[int, int, int] = (1, 2, 3)) -> None:
    wish = NewTopic(topic, partitions, replica_assignment=[list(replicas)] * partitions)
    three.admin.create_topics([wish], request_timeout=120)[topic].result(120)
    until(lambda: topic in three.metadata().topics and three.in_sync())


def others(three: Three, *taken: int) -> list[int]:
    return [number for number in three.brokers if number not in taken]


def spread(three: Three, topic: str, partitions: int) -> float:
    """Seconds from the request until every partition has a leader and its replicas are in sync."""
    begun = time.perf_counter()
    three.admin.create_topics([NewTopic(topic, partitions, 3)], request_timeout=120)[topic].result(120)
    until(lambda: topic in three.metadata().topics and three.in_sync())
    return time.perf_counter() - begun


def pause_of_kill(three: Three, name: str, choose: Callable[[int, int], tuple[int, int]]) -> float:
    """`choose` returns leader and victim, of the controller and another broker."""
    pauses = []
    for number in range(KILLS):
        controller = three.controller()
        leader, victim = choose(controller, others(three, controller)[0])
        rest = others(three, leader)
        create(three, f"{name}-{number}", 1, (leader, rest[0], rest[1]))
        with Paused(three.bootstrap, f"{name}-{number}") as seen:
            three.await_ping(victim)
            three.brokers[victim].kill()
            until(lambda: len(three.metadata().brokers) == 2)
            seen.more()
        three.start(victim)
        until(three.in_sync)
        pauses.append(seen.longest_s)
    return median(pauses)


def pause_of_stop(three: Three, name: str, leader: int, stopped: list[int]) -> float:
    """Brokers are stopped and started again, one after the other."""
    rest = others(three, leader)
    create(three, name, 1, (leader, rest[0], rest[1]))
    with Paused(three.bootstrap, name) as seen:
        for number in stopped:
            three.brokers[number].stop()
            seen.more(10)
            three.start(number)
            until(three.in_sync)
        seen.more()
    return seen.longest_s


def leaders_moved(three: Three, victim: int) -> float:
    """Seconds from the kill of the controller until no partition is led by it any more."""
    begun = time.perf_counter()
    three.brokers[victim].kill()

    def moved() -> bool:
        found = three.metadata()
        parts = [part for topic in found.topics.values() for part in topic.partitions.values()]
        return victim not in found.brokers and all(part.leader not in (victim, -1) for part in parts)

    until(moved)
    return time.perf_counter() - begun


def measure(make: Callable[[int, str, Path], Broker], scale: float) -> Mapping[str, float]:
    rows: dict[str, float] = {}
    with cluster(make) as three:
        rows["start"] = sum(three.start(number) for number in three.brokers) / 3
        until(lambda: len(three.metadata().brokers) == 3)
        rows["idle"] = three.resident_mb()
        controller = three.controller()
        leader = others(three, controller)[0]
        rest = others(three, leader)
        create(three, "sync", 1, (leader, rest[0], rest[1]))
        count = int(SYNCHRONOUS * scale)
        rows["p50"], rows["p99"] = fresh(clients.synchronous, three.bootstrap, "sync", count, ALL)
        before, produced = three.cpu_seconds(), 0.0
        for partitions in COUNTS:
            for size in SIZES:
                name = f"load-{partitions}-{size}"
                spread(three, name, partitions)
                records = int(MB_OF[size] * 1e6 * scale) // size
                rows[name] = fresh(clients.produce, three.bootstrap, name, partitions, size, records, ALL)
                produced += records * size / 1e6
        rows["cpu"] = (three.cpu_seconds() - before) / produced * 1_000

        rows["stop"] = pause_of_stop(three, "stop", leader, [leader])
        rows["roll"] = pause_of_stop(three, "roll", 1, [1, 2, 3])
        rows["kill-leader"] = pause_of_kill(three, "kl", lambda _, other: (other, other))
        rows["kill-controller"] = pause_of_kill(three, "kc", lambda controller, other: (other, controller))
        rows["kill-both"] = pause_of_kill(three, "kb", lambda controller, _: (controller, controller))

        create(three, "behind", 1, (1, 2, 3))
        three.brokers[3].stop()
        records = int(CATCH_UP_MB * 1_000 * scale)
        fresh(clients.produce, three.bootstrap, "behind", 1, 1_000, records, ALL)
        begun = time.perf_counter()
        three.start(3)
        until(three.in_sync)
        rows["catch-up"] = time.perf_counter() - begun

        many = int(MANY * scale)
        rows["create-many"] = spread(three, "many", many)
        spread(three, "more", many)
        rows["memory-many"] = three.resident_mb()
        rows["fail-over-many"] = leaders_moved(three, three.controller())
    return rows


def contenders(session: Session) -> Mapping[str, Contender]:
    scale = 0.1 if session.quick else 1.0
    return {OURS: partial(measure, ixion, scale), KAFKA: partial(measure, apache_kafka, scale)}


ROWS = (
    Row(key="start", label="start of a broker until its port answers", unit="s"),
    Row(key="idle", label="memory of a broker, idle", unit="MB"),
    Row(key="memory-many", label="memory of a broker with 2,000 partitions", unit="MB"),
    Row(key="p50", label="synchronous produce, acks=all, median", unit="µs"),
    Row(key="p99", label="synchronous produce, acks=all, p99", unit="µs"),
    *(
        Row(
            key=f"load-{count}-{size}",
            label=f"produce {label}, {count} partition{'s' * (count > 1)}, acks=all",
            unit="MB/s",
        )
        for count in COUNTS
        for size, label in SIZES.items()
    ),
    Row(key="cpu", label="processor time of all brokers per MB produced", unit="ms"),
    Row(key="kill-leader", label="pause after kill -9 of the leader", unit="s"),
    Row(key="kill-controller", label="pause after kill -9 of the controller, an in-sync replica", unit="s"),
    Row(key="kill-both", label="pause after kill -9 of leader and controller in one", unit="s"),
    Row(key="stop", label="longest pause of a controlled shutdown and return", unit="s"),
    Row(key="roll", label="longest pause of a rolling restart", unit="s"),
    Row(key="catch-up", label="a broker returns and copies 200 MB", unit="s"),
    Row(key="create-many", label="topic with 1,000 partitions until all are in sync", unit="s"),
    Row(key="fail-over-many", label="controller killed with 2,000 partitions, until all leaders moved", unit="s"),
)
LIMITS = {"start": 0.15, "idle": 0.15, "memory-many": 0.15, "p50": 0.6, "p99": 0.6}


def goal(row: Row) -> Goal:
    if row.unit == "MB/s":
        return Goal(label=row.label, value=(row.key, OURS), base=(row.key, KAFKA), at_least=1.0)
    return Goal(label=row.label, value=(row.key, OURS), base=(row.key, KAFKA), at_most=LIMITS.get(row.key, 1.0))


BENCHMARK = Benchmark(
    name="cluster",
    title="Three brokers beside three of Apache Kafka",
    rows=ROWS,
    goals=tuple(goal(row) for row in ROWS),
    baseline=KAFKA,
    contenders=contenders,
    rounds=1,  # it takes minutes, most of them waiting for sessions to end
)
