"""The faults of a run: a list made from the seed before it begins, so that it can be shortened and replayed.

Where a fault names a role (the leader of partition 0, the controller), it hits the broker that has it at that moment:
most of what can go wrong in replication goes wrong around those. A fault may also wait for a moment, such as the next
change of a leader, and strike right after it.

Each seed has a character of its own (swarm testing): it draws some of the kinds, how fast faults follow each other and
how long they last. A run with every kind at once mends by one fault what another has broken.
"""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Final

from devtools.sim.moments import MOMENTS
from ixion.language.model.topic_partition import TopicPartition

# How often each kind comes, relative to the others.
KINDS: Final = {
    "kill": 5,
    "vanish": 2,
    "bounce": 3,
    "power": 3,
    "wipe": 1,
    "pause": 4,
    "stop": 2,
    "cut": 5,
    "cut-one-way": 3,
    "isolate": 3,
    "alone": 4,
    "half-open": 2,
    "hold": 4,
    "hold-answer": 4,
    "reset": 3,
    "slow": 2,
    "topple": 3,
    "flip": 4,
    "late-fetch": 2,
    "late-join": 2,
    "late-shrink": 1,
    "late-grow": 1,
    "late-answer": 1,
    "late-leave": 1,
    "stale-mark": 1,
    "late-update": 1,
    "late-stop": 1,
    "late-write": 1,
    "late-records": 1,
    "slow-register": 1,
    "start-full": 1,
    "last-wiped": 1,
    "wiped-between": 1,
    "silent-flip": 1,
    "elect": 3,
    "depose": 2,
    "cut-tree": 4,
    "slow-tree": 2,
    "expire": 2,
    "expire-in-start": 1,
    "clock": 1,
    "drift": 1,
    "disk-fails": 2,
    "disk-full": 2,
    "disk-slow": 2,
}
TARGETS: Final = ("leader", "leader", "follower", "controller", "1", "2", "3")
OTHERS: Final = ("1", "2", "3", "follower", "controller")
DURATIONS_S: Final = (0.05, 0.5, 2.0, 5.0, 9.0)
# Which requests `hold` keeps back: Produce, Fetch, LeaderAndIsr, StopReplica, UpdateMetadata, AlterPartition.
APIS: Final = (0, 1, 4, 5, 6, 56)


@dataclass(frozen=True, slots=True)
class Fault:
    at_s: float  # after the load began
    kind: str
    target: str
    other: str
    for_s: float
    key: TopicPartition
    moment: str = ""  # it waits for this, once its time has come
    after_s: float = 0.0  # and then so long
    api: int = 0

    def __str__(self) -> str:
        when = f" at the next {self.moment}, {self.after_s * 1_000:.0f} ms later," if self.moment else ""
        return (
            f"{self.at_s:.3f} s:{when} {self.kind} {self.target} {self.other} for {self.for_s:.2f} s"
            f" ({self.key[0]}-{self.key[1]}, api {self.api})"
        )


def make_faults(seed: int, length_s: float, keys: list[TopicPartition], kinds: dict[str, int]) -> list[Fault]:
    chance = random.Random(seed * 2 + 1)
    names = sorted(kinds)
    if len(names) > 4:
        names = sorted(chance.sample(names, chance.choice((3, 5, 8, len(names)))))
    gap_s = chance.choice((0.6, 1.5, 4.0))
    durations_s = chance.choice((DURATIONS_S, DURATIONS_S[:3], DURATIONS_S[2:]))
    aimed = chance.choice((0.0, 0.3, 0.7))  # how many wait for a moment
    moments = chance.sample(MOMENTS, 2)
    faults: list[Fault] = []
    at_s = 0.5
    while at_s < length_s:
        kind = chance.choices(names, [kinds[name] for name in names])[0]
        moment = chance.choice(moments) if chance.random() < aimed else ""
        faults.append(
            Fault(
                at_s,
                kind,
                chance.choice(TARGETS),
                chance.choice(OTHERS),
                chance.choice(durations_s) * chance.uniform(0.7, 1.3),
                chance.choice(keys),
                moment,
                chance.choice((0.0, 0.002, 0.05, 0.4)) * chance.random(),
                chance.choice(APIS),
            )
        )
        at_s += chance.expovariate(1 / gap_s)
    return faults
