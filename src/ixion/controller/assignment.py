"""Which brokers get the replicas of a new topic.

Leaders go round robin over the brokers from a start; the other replicas follow at a distance that grows by one with
each round, so that the followers of one leader are spread as well. Five brokers, three replicas, start 0, shift 0:

    partition   0        1        2        3        4        5
    replicas    0,1,2    1,2,3    2,3,4    3,4,0    4,0,1    0,2,3
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from ixion.model.errors import ErrorCode, KafkaError


def assign(
    brokers: Sequence[int], partitions: int, replication: int, *, first: int = 0, start: int = -1, shift: int = -1
) -> Iterator[tuple[int, ...]]:
    """The replicas of partitions `first`, `first + 1` …, the preferred leader in front, one after the other."""
    if replication > len(brokers):
        raise KafkaError(
            ErrorCode.INVALID_REPLICATION_FACTOR,
            f"replication factor {replication} is larger than the number of brokers, {len(brokers)}",
        )
    count = len(brokers)
    if start < 0:
        start = drawn(count)
    if shift < 0:
        shift = drawn(count)
    for partition in range(first, first + partitions):
        if partition > 0 and partition % count == 0:
            shift += 1
        leader = (partition + start) % count
        replicas = [brokers[leader]]
        for other in range(replication - 1):
            distance = 1 + (shift + other) % (count - 1)
            replicas.append(brokers[(leader + distance) % count])
        yield tuple(replicas)


def check_assignment(given: dict[int, tuple[int, ...]], brokers: Sequence[int], first: int = 0) -> None:
    """Check an assignment by the user: no gaps, equal numbers of replicas, no broker twice, live brokers only."""

    def refuse(problem: str) -> KafkaError:
        return KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, problem)

    numbers = sorted(given)
    if numbers != list(range(first, first + len(numbers))):
        raise refuse(f"partitions must be numbered from {first} on without gaps, not {numbers}")
    sizes = {len(replicas) for replicas in given.values()}
    if len(sizes) > 1:
        raise refuse("all partitions must have the same number of replicas")
    for number, replicas in given.items():
        if not replicas:
            raise refuse(f"partition {number} has no replicas")
        if len(set(replicas)) < len(replicas):
            raise refuse(f"partition {number} names a broker twice: {list(replicas)}")
        unknown = [broker for broker in replicas if broker not in brokers]
        if unknown:
            raise refuse(f"partition {number} names unknown brokers: {unknown}")


def drawn(count: int) -> int:
    """A random number from 0 to count - 1; importing `random` would take 3 ms of every start."""
    return int.from_bytes(os.urandom(4), "big") % count
