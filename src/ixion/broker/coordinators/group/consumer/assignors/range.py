"""Range: each member gets a run of neighbouring partitions of every topic.

Topics with the same number of partitions and the same members are cut alike, so equal keys of two topics go to the same
member. Seven partitions, three members: 0-2, 3-4, 5-6.
"""

from __future__ import annotations

from collections import defaultdict

from ixion.broker.coordinators.group.consumer.assignment import Assignment
from ixion.broker.coordinators.group.consumer.assignors.spec import STEP, Spec
from ixion.timer.turns import Steps


def assign_range(spec: Spec) -> Steps[dict[str, Assignment]]:
    shares: dict[str, dict[bytes, frozenset[int]]] = {}
    readers_of: defaultdict[bytes, list[str]] = defaultdict(list)
    for member_id in (yield from spec.in_order()):
        shares[member_id] = {}
        for topic_id in spec.readers[member_id].topics:
            readers_of[topic_id].append(member_id)
        yield
    for topic_id, readers in readers_of.items():
        count, start = spec.partitions[topic_id], 0
        for place, member_id in enumerate(readers):
            size = count // len(readers) + (place < count % len(readers))
            if size:
                shares[member_id][topic_id] = frozenset(range(start, start + size))
            start += size
            if place % STEP == 0:
                yield
    return {**shares}
