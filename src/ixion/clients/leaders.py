"""Asks the leaders of many partitions at once, and again for those that had moved.

`ask(connection, partitions, deadline)` sends one request and returns, per partition, an error code and a value. The
partitions whose code a retry can mend are asked for again, of whoever leads them by then; for the others the first
error is raised, naming the partition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from ixion.clients.cluster import Cluster
from ixion.clients.connection import Connection
from ixion.clients.deadline import Deadline
from ixion.clients.faults import GarbledError, error_code
from ixion.clients.metadata import Topic, TopicPartition
from ixion.model.errors import ErrorCode, KafkaError

T = TypeVar("T")
Ask = Callable[[Connection, list[TopicPartition], Deadline], dict[TopicPartition, tuple[int, T]]]


def ask_leaders(
    cluster: Cluster, what: str, partitions: Iterable[TopicPartition], ask: Ask[T]
) -> dict[TopicPartition, T]:
    left = list(dict.fromkeys(partitions))
    done: dict[TopicPartition, T] = {}

    def round_of_asking(deadline: Deadline) -> dict[TopicPartition, T]:
        again: KafkaError | None = None
        for leader, led in by_leader(cluster, left, deadline).items():
            answers = ask(cluster.node(leader, deadline), led, deadline)
            for partition in led:
                if partition not in answers:
                    raise GarbledError(f"{what}: broker {leader} left out {partition}")
                code, value = answers[partition]
                if code == 0:
                    done[partition] = value
                    left.remove(partition)
                    continue
                fault = KafkaError(error_code(code), f"{partition}: {error_code(code).explanation}")
                if not fault.code.retriable:
                    raise fault
                again = fault
        if again is not None:
            raise again
        return done

    return cluster.attempt(what, round_of_asking)


def by_leader(
    cluster: Cluster, partitions: Iterable[TopicPartition], deadline: Deadline
) -> dict[int, list[TopicPartition]]:
    found: dict[int, list[TopicPartition]] = {}
    for partition in partitions:
        found.setdefault(leader_of(cluster, partition, deadline), []).append(partition)
    return found


def leader_of(cluster: Cluster, partition: TopicPartition, deadline: Deadline) -> int:
    return leader_in(cluster.topic(partition.topic, deadline), partition)


def leader_in(topic: Topic, partition: TopicPartition) -> int:
    known = topic.partitions
    if not 0 <= partition.partition < len(known):
        text = f"topic {partition.topic!r} has partitions 0 to {len(known) - 1}, not {partition.partition}"
        raise KafkaError(ErrorCode.INVALID_PARTITIONS, text)
    leader = known[partition.partition].leader
    if leader < 0:
        raise KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, f"{partition} has no leader at the moment")
    return leader
