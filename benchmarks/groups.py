"""Groups beside Apache Kafka 3.9.1: commits of offsets, and a group of five hundred members.

Both brokers begin a rebalance without an initial delay, so that what is timed is their work and not a setting.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from functools import partial

from benchmarks.framework import Benchmark, Contender, Goal, Row, Session, fresh
from benchmarks.loads import broker_clients, group_clients
from benchmarks.loads.broker_servers import Server, apache_kafka, ixion

OURS, KAFKA = "ixion", "Apache Kafka 3.9.1"
SETTINGS = {"group.initial.rebalance.delay.ms": "0"}
MEMBERS = 500


def measure(
    start: Callable[[Mapping[str, str]], AbstractContextManager[Server]], commits: int, members: int
) -> Mapping[str, float]:
    with start(SETTINGS) as server:
        where = server.bootstrap
        fresh(broker_clients.first_ack, where)
        fresh(broker_clients.create_topics, where, {"t": 1})
        before = server.cpu_seconds()
        one_by_one, at_once = fresh(group_clients.commits, where, commits)
        cpu = (server.cpu_seconds() - before) / (2 * commits + group_clients.WARM) * 1e6
        settled, absorbed = fresh(group_clients.settle, where, members)
    return {"one": one_by_one, "many": at_once, "cpu": cpu, "settle": settled, "leave": absorbed}


def contenders(session: Session) -> Mapping[str, Contender]:
    commits, members = (1_000, 50) if session.quick else (10_000, MEMBERS)
    return {
        OURS: partial(measure, ixion, commits, members),
        KAFKA: partial(measure, apache_kafka, commits, members),
    }


ROWS = (
    Row(key="one", label="commits of an offset, one after the other", unit="1/s"),
    Row(key="many", label="commits of an offset, pipelined", unit="1/s"),
    Row(key="cpu", label="broker's processor time per commit", unit="µs"),
    Row(key="settle", label=f"a group of {MEMBERS} members settles", unit="ms"),
    Row(key="leave", label=f"a group of {MEMBERS} members absorbs one leaving", unit="ms"),
)


def goal(key: str, *, more: bool) -> Goal:
    label = next(row.label for row in ROWS if row.key == key)
    value, base = (key, OURS), (key, KAFKA)
    if more:
        return Goal(label=label, value=value, base=base, at_least=1.0)
    return Goal(label=label, value=value, base=base, at_most=1.0)


BENCHMARK = Benchmark(
    name="groups",
    title="Groups beside Apache Kafka",
    rows=ROWS,
    goals=(goal("one", more=True), goal("many", more=True), goal("settle", more=False), goal("leave", more=False)),
    baseline=KAFKA,
    contenders=contenders,
)
