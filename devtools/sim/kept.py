"""Runs that have found a fault in the brokers or in the clients: the test suite repeats them."""

from __future__ import annotations

from typing import Final, NamedTuple

from devtools.sim.faults import KINDS, Fault, make_faults
from ixion.model.topic_partition import TopicPartition


class Kept(NamedTuple):
    what: str  # was wrong
    seed: int
    job: str
    length_s: float
    faults: tuple[Fault, ...] | None = None  # None: those of the seed
    kinds: str = ""  # that the seed draws from; all, if empty

    def schedule(self, keys: list[TopicPartition]) -> list[Fault]:
        if self.faults is not None:
            return list(self.faults)
        kinds = {kind: KINDS[kind] for kind in self.kinds.split(",")} if self.kinds else KINDS
        return make_faults(self.seed, self.length_s, keys, kinds)


LATER_KINDS: Final = (
    *("late-shrink", "late-grow", "late-answer", "late-leave", "stale-mark", "depose", "expire-in-start"),
    *("late-update", "late-stop", "late-write", "late-records", "slow-register", "start-full", "last-wiped"),
    *("silent-flip", "wiped-between"),
)
EARLIER_KINDS: Final = ",".join(kind for kind in KINDS if kind not in LATER_KINDS)

KEPT: Final = (
    Kept(
        "a replica whose disk had been replaced led, empty, although others had records",
        *(2, "none", 16.0, None, EARLIER_KINDS),
    ),
    Kept(
        "a transactional producer spun while it waited",
        *(1, "transactions", 2.0),
        (Fault(0.5, "kill", "controller", "1", 0.5, ("t", 0)),),
    ),
    Kept(
        "a broker whose session expired during its start neither started nor stopped",
        *(3, "none", 16.0, None, "slow-tree,bounce,expire"),
    ),
    Kept(
        "a leader that was registered again between two controllers, with an empty disk, led on",
        *(14, "none", 16.0, None, "wipe,pause,kill,alone"),
    ),
    Kept(
        "the partitions of a broker that started on a full disk stayed offline when there was room",
        1,
        "none",
        6.0,
        (
            Fault(0.5, "disk-full", "2", "1", 4.0, ("t", 0)),
            Fault(0.7, "kill", "2", "1", 0.5, ("t", 0)),
        ),
    ),
    Kept(
        "a broker that became the leader went on to follow the sibling, and cut delayed records off it",
        3037,
        "delayed",
        16.0,
        (
            Fault(0.5, "vanish", "1", "3", 0.037, ("t", 1)),
            Fault(3.035, "expire", "2", "controller", 2.055, ("t", 0)),
            Fault(7.856, "expire", "follower", "follower", 6.21, ("t", 1)),
        ),
    ),
    Kept(
        "a change of settings that met an expired session was logged as a bug, with a code that nobody repeats",
        *(5001, "changes", 16.0, None, ""),
    ),
    Kept(
        "a replica that was killed and had kept its log left the ISR, and one that was dead stayed in it",
        5177,
        "none",
        16.0,
        (
            Fault(0.5, "pause", "follower", "follower", 10.62, ("t", 0)),
            Fault(2.2, "depose", "3", "follower", 4.9, ("t", 0)),
            Fault(2.265, "power", "2", "controller", 6.49, ("t", 0)),
            Fault(3.393, "topple", "2", "controller", 1.73, ("t", 1)),
            Fault(5.541, "alone", "1", "2", 3.81, ("t", 0)),
        ),
    ),
    Kept(
        "an ISR that was written just after a member was back with an empty disk hid that from the next controller",
        7097,
        "moves",
        16.0,
        (
            Fault(0.5, "late-join", "follower", "3", 9.0985, ("t", 0), "leader-change", 0.00070873, 0),
            Fault(4.4316, "slow", "leader", "2", 0.06397, ("t", 0), "leader-change", 0.23078, 56),
            Fault(5.3759, "slow", "2", "1", 0.46231, ("t", 0), "leader-change", 0.016613, 1),
        ),
    ),
    Kept(
        "a broker whose disk had failed said that it had deleted a replica, and had it again after its next start",
        8017,
        "changes",
        16.0,
        (
            Fault(3.436, "alone", "leader", "2", 0.464, ("t", 1)),
            Fault(4.826, "disk-fails", "leader", "controller", 1.497, ("t", 1)),
        ),
    ),
)
