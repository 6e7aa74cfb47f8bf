"""Plans replica moves: as few as possible, with preferred leaders spread evenly.

    drain 3 of brokers 1, 2, 3, 4:     t-0 on 1,3  ->  1,4     t-1 on 3,2  ->  4,2     t-2 on 1,2 stays

A replica that may stay, stays. A new one goes to the broker with the fewest replicas, in a rack without a replica if
possible.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from ixion.cli.command import UsageError
from ixion.clients.metadata import TopicPartition

Replicas = tuple[int, ...]


def spread(
    current: Mapping[TopicPartition, Replicas],
    chosen: Collection[TopicPartition],
    racks: Mapping[int, str | None],
    factor: int | None = None,
) -> dict[TopicPartition, Replicas]:
    """The changed replicas of the `chosen` partitions, if they may only be on the brokers of `racks`. `factor` is the
    number of replicas; None keeps it. UsageError if there are not enough brokers."""
    load = dict.fromkeys(racks, 0)
    preferred = dict.fromkeys(racks, 0)
    for place, replicas in current.items():
        kept = replicas if place not in chosen else tuple(each for each in replicas if each in racks)
        for broker in kept:
            if broker in load:
                load[broker] += 1
        if place not in chosen and replicas and replicas[0] in preferred:
            preferred[replicas[0]] += 1
    plan: dict[TopicPartition, Replicas] = {}
    for place in sorted(chosen):
        before = current[place]
        after = _placed(place, before, racks, load, len(before) if factor is None else factor)
        if before[0] not in after:  # the preferred leader leaves: the broker that leads least replaces it
            first = min(after, key=lambda broker: (preferred[broker], after.index(broker)))
            after = (first, *(each for each in after if each != first))
        preferred[after[0]] += 1
        if after != before:
            plan[place] = after
    return plan


def _placed(
    place: TopicPartition, before: Replicas, racks: Mapping[int, str | None], load: dict[int, int], count: int
) -> Replicas:
    if count > len(racks):
        there = f"{len(racks)} broker{'s are' if len(racks) != 1 else ' is'} left"
        fewer = f"; ixion cluster reassign {place.topic} --replication N gives it fewer" if racks else ""
        raise UsageError(f"{place} has {count} replica{'s' if count != 1 else ''}, but {there} for it{fewer}")
    after: list[int | None] = [each if each in racks else None for each in before]
    while len(after) > count:  # fewer than before: drop those that must go anyway, then the last
        gone = after.pop(after.index(None) if None in after else -1)
        if gone is not None:
            load[gone] -= 1
    after += [None] * (count - len(after))
    for index, each in enumerate(after):
        if each is None:
            used = {racks[broker] for broker in after if broker is not None and racks[broker] is not None}
            free = [broker for broker in racks if broker not in after]
            broker = min(free, key=lambda it: (racks[it] in used, load[it], it))
            after[index] = broker
            load[broker] += 1
    return tuple(each for each in after if each is not None)
