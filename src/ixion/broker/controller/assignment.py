"""Which brokers get the replicas of a new topic.

Leaders go round robin over the brokers from a start; the other replicas follow at a distance that grows by one with
each round, so that the followers of one leader are spread as well. Five brokers, three replicas, start 0, shift 0:

    partition   0        1        2        3        4        5
    replicas    0,1,2    1,2,3    2,3,4    3,4,0    4,0,1    0,2,3

If every broker has a rack, the brokers are taken from the racks in turn, and a rack gets a second replica of a
partition only when every rack has one. Racks a: 0, 1; b: 2, 3; c: 4; in turn 0, 2, 4, 1, 3: partition 0 is on 0, 2, 4.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence

from ixion.language.model.errors import ErrorCode, KafkaError


def assign(
    brokers: Sequence[int],
    partitions: int,
    replication: int,
    *,
    first: int = 0,
    start: int = -1,
    shift: int = -1,
    racks: Mapping[int, str | None] | None = None,
) -> Iterator[tuple[int, ...]]:
    """The replicas of partitions `first`, `first + 1` …, each with the preferred leader first."""
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
    rack_of = {broker: rack for broker in brokers if (rack := (racks or {}).get(broker)) is not None}
    if len(rack_of) == count and len(set(rack_of.values())) > 1:
        yield from across_racks(rack_of, range(first, first + partitions), replication, start, shift)
        return
    for partition in range(first, first + partitions):
        if partition > 0 and partition % count == 0:
            shift += 1
        leader = (partition + start) % count
        replicas = [brokers[leader]]
        for other in range(replication - 1):
            distance = 1 + (shift + other) % (count - 1)
            replicas.append(brokers[(leader + distance) % count])
        yield tuple(replicas)


def across_racks(
    rack_of: Mapping[int, str], partitions: range, replication: int, start: int, shift: int
) -> Iterator[tuple[int, ...]]:
    brokers = in_turn(rack_of)
    count, racks = len(brokers), len(set(rack_of.values()))
    for partition in partitions:
        if partition > 0 and partition % count == 0:
            shift += 1
        leader = (partition + start) % count
        replicas = [brokers[leader]]
        used = {rack_of[brokers[leader]]}
        step = 0
        while len(replicas) < replication:
            distance = 1 + (shift * racks + step) % (count - 1)
            broker = brokers[(leader + distance) % count]
            step += 1
            if broker not in replicas and (rack_of[broker] not in used or len(used) == racks):
                replicas.append(broker)
                used.add(rack_of[broker])
        yield tuple(replicas)


def in_turn(rack_of: Mapping[int, str]) -> list[int]:
    """The brokers, taken from the racks in turn; a rack without brokers left is skipped."""
    by_rack: dict[str, list[int]] = {}
    for broker, rack in sorted(rack_of.items()):
        by_rack.setdefault(rack, []).append(broker)
    ordered = [by_rack[rack] for rack in sorted(by_rack)]
    longest = max(map(len, ordered), default=0)
    return [rack[place] for place in range(longest) for rack in ordered if place < len(rack)]


def check_assignment(given: dict[int, tuple[int, ...]], brokers: Sequence[int], first: int = 0) -> None:
    """Check a user's assignment: no gaps, equal numbers of replicas, no broker twice, live brokers only."""

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
    """A random number from 0 to count - 1, without `random`, whose import takes 3 ms of every start."""
    return int.from_bytes(os.urandom(4), "big") % count
