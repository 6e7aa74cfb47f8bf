"""Runs that have found a fault in the brokers or in the clients: the test suite repeats them."""

from __future__ import annotations

from typing import Final, NamedTuple

from devtools.sim.faults import KINDS, Fault, make_faults
from ixion.language.model.topic_partition import TopicPartition


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
    Kept(
        "members of a group waited for minutes for the answer of a coordinator whose machine was lost",
        *(42164, "copies", 16.0),
        (Fault(0.5, "last-wiped", "controller", "3", 2.048132604101089, ("t", 1), "", 0.04843438906165101, 0),),
    ),
    Kept(
        "a broker whose session expired while it claimed producer ids logged that as a bug",
        32125,
        "transactions",
        16.0,
        (
            Fault(0.5, "alone", "follower", "3", 1.9971650168063788, ("t", 1), "", 0.3254988322204857, 0),
            Fault(2.851937, "cut-tree", "2", "2", 10.133338703963636, ("t", 1), "truncation", 7.5734867e-05, 0),
        ),
    ),
    Kept(
        "a leader that had stopped cleanly knew the last batch of a producer only, and refused an earlier one",
        31353,
        "copies",
        16.0,
        (
            Fault(0.7082209298768422, "expire", "leader", "2", 1.9865546760390607, ("t", 0)),
            Fault(4.275362853669401, "alone", "2", "3", 2.117656247616262, ("t", 0)),
            Fault(6.811429537965726, "expire-in-start", "1", "follower", 2.439080794442547, ("t", 1)),
            Fault(6.939870766046281, "alone", "3", "1", 4.71134171176894, ("t", 0)),
        ),
    ),
    Kept(
        "a leader with an empty disk led on under a new controller, while the other replica in sync was away",
        41061,
        "moves",
        3.0,
        (Fault(0.5, "wiped-between", "leader", "1", 1.6239, ("t", 1)),),
    ),
    Kept(
        "a leader that had lost power led on, while another replica that was in sync was away",
        31787,
        "moves",
        10.0,
        (
            Fault(0.5, "alone", "2", "controller", 5.9648, ("t", 0)),
            Fault(2.9226, "power", "follower", "3", 2.5911, ("t", 1)),
            Fault(5.1029, "alone", "follower", "follower", 2.1753, ("t", 0)),
        ),
    ),
    Kept(
        "the answer of a broker that had lost power was taken for that of its earlier life",
        42142,
        "none",
        16.0,
        (
            Fault(0.5, "disk-slow", "leader", "2", 0.4911, ("t", 1), "controller-change", 0.0),
            Fault(0.55469, "topple", "3", "2", 9.0215, ("t", 0)),
            Fault(0.86299, "power", "2", "follower", 0.043125, ("t", 0)),
            Fault(2.3966, "power", "controller", "1", 4.5666, ("t", 1)),
            Fault(3.1865, "topple", "controller", "3", 5.6847, ("t", 1)),
            Fault(5.1335, "topple", "2", "3", 4.539, ("t", 1), "controller-change", 0.025115),
            Fault(9.3135, "power", "leader", "follower", 11.175, ("t", 0)),
            Fault(9.97, "disk-slow", "3", "controller", 1.7014, ("t", 0), "controller-change", 0.0),
            Fault(12.817, "topple", "2", "follower", 0.038649, ("t", 1)),
            Fault(13.879, "topple", "leader", "2", 0.040822, ("t", 0)),
            Fault(13.958, "power", "follower", "follower", 0.047578, ("t", 0)),
        ),
    ),
    Kept(
        "brokers stopped, one after the other, and left a partition to a dead one that had lost power",
        31737,
        "none",
        5.0,
        (
            Fault(0.5, "power", "leader", "1", 0.40774, ("t", 0)),
            Fault(1.3065, "stop", "follower", "controller", 0.43852, ("t", 0)),
            Fault(2.3561, "stop", "follower", "controller", 1.688, ("t", 0)),
        ),
    ),
    Kept(
        "the last replica in sync came back with an empty disk, and one led that had left before the last records",
        41241,
        "none",
        9.0,
        (
            Fault(0.5, "last-wiped", "leader", "2", 0.051742, ("t", 0)),
            Fault(2.4915, "disk-fails", "2", "2", 0.04073, ("t", 1)),
            Fault(5.9506, "disk-fails", "follower", "2", 0.47111, ("t", 0)),
            Fault(6.3299, "disk-fails", "follower", "3", 0.36694, ("t", 1)),
        ),
    ),
    Kept(
        "a replica that had left the ISR as the last but one was not waited for when it did not answer",
        42029,
        "moves",
        16.0,
        (
            Fault(0.5, "late-write", "controller", "3", 10.797, ("t", 1)),
            Fault(1.4797, "expire-in-start", "1", "follower", 6.0776, ("t", 1)),
            Fault(4.9062, "wipe", "1", "follower", 6.0878, ("t", 1), "controller-change", 0.039427),
            Fault(5.9222, "flip", "leader", "2", 2.2869, ("t", 1)),
            Fault(7.0861, "expire-in-start", "leader", "2", 3.7134, ("t", 0)),
            Fault(11.245, "cut-one-way", "controller", "follower", 5.693, ("t", 0)),
        ),
    ),
    Kept(
        "a controller was lost before a broker heard that a partition had left it, and its log stayed",
        31507,
        "moves",
        16.0,
        (
            Fault(1.0004, "alone", "follower", "follower", 1.9954, ("t", 0), "isr-shrinks", 0.001354),
            Fault(3.1947, "alone", "controller", "follower", 1.6119, ("t", 1), "isr-shrinks", 0.015902),
            Fault(4.2629, "silent-flip", "follower", "follower", 5.4773, ("t", 0), "isr-shrinks", 0.0),
        ),
    ),
    Kept(
        "a broker was dead, and still registered, when a partition left it, and its log stayed",
        31685,
        "moves",
        16.0,
        (
            Fault(5.2922, "kill", "leader", "2", 0.48978, ("t", 0)),
            Fault(10.325, "kill", "2", "follower", 0.05965, ("t", 1)),
        ),
    ),
    Kept(
        "a replica that could not be opened on a full disk was said to be deleted, and opened when there was room",
        12,
        "moves",
        16.0,
        (
            Fault(3.1145, "silent-flip", "controller", "1", 6.31257, ("t", 1), "", 0.047385),
            Fault(3.1944, "disk-fails", "2", "2", 2.50993, ("t", 1), "", 0.000334),
            Fault(4.8377, "hold-answer", "3", "3", 4.45396, ("t", 0), "", 0.001144, 1),
            Fault(5.6612, "disk-full", "3", "3", 10.55191, ("t", 0)),
            Fault(7.9857, "cut", "1", "2", 1.48989, ("t", 0), "", 0.035661),
            Fault(8.9818, "cut-one-way", "leader", "controller", 3.50604, ("t", 1), "", 0.0),
            Fault(12.6105, "kill", "leader", "follower", 2.364, ("t", 0)),
        ),
    ),
    Kept(
        "a broker that had just started said that a topic was unknown, and its deletion counted as done",
        31098,
        "changes",
        6.0,
        (
            Fault(1.7488, "kill", "1", "follower", 1.459, ("t", 0)),
            Fault(4.5879, "kill", "controller", "3", 0.062048, ("t", 0)),
        ),
    ),
    Kept(
        "An unsynced segment was empty after a loss of power, and the log went on behind it",
        100096,
        "cleaning",
        16.0,
        (
            Fault(0.64764, "power", "follower", "follower", 2.0603, ("t", 1)),
            Fault(3.301, "elect", "follower", "follower", 1.4903, ("t", 0)),
            Fault(7.6961, "power", "1", "1", 4.0181, ("t", 1)),
            Fault(12.037, "disk-slow", "leader", "follower", 7.0161, ("t", 0)),
            Fault(13.769, "power", "3", "follower", 10.477, ("t", 1)),
        ),
    ),
    Kept(
        "a share consumer left a session open when the last lock of it had ended, until something else woke it",
        *(50, "shares", 16.0),
    ),
)

# Other ways to the same faults: `--kept` runs them, the test suite does not.
TWINS: Final = (
    Kept(
        "41061, right after a change of leader",
        41433,
        "moves",
        4.0,
        (Fault(0.5, "wiped-between", "1", "2", 4.3348, ("t", 0), "leader-change", 0.0011946),),
    ),
    Kept(
        "41061, with another controller",
        41746,
        "moves",
        6.0,
        (Fault(3.6671, "wiped-between", "follower", "1", 6.9849, ("t", 1)),),
    ),
    Kept(
        "41061, after the leader had moved",
        42088,
        "moves",
        12.0,
        (Fault(9.5253, "wiped-between", "leader", "3", 0.061569, ("t", 0), "leader-change", 0.033942),),
    ),
    Kept(
        "31737, after some changes of leader",
        31828,
        "none",
        15.0,
        (
            Fault(0.5, "stop", "leader", "follower", 7.0053, ("t", 0)),
            Fault(0.85859, "vanish", "1", "2", 1.6431, ("t", 1)),
            Fault(7.0242, "topple", "1", "follower", 1.6376, ("t", 0)),
            Fault(11.03, "power", "3", "2", 1.6632, ("t", 1)),
            Fault(11.647, "stop", "follower", "controller", 8.7109, ("t", 0)),
            Fault(12.561, "stop", "leader", "1", 11.349, ("t", 0)),
        ),
    ),
    Kept(
        "31685, after a loss of power",
        32102,
        "moves",
        16.0,
        (Fault(15.38, "power", "3", "controller", 0.49843, ("t", 0), "isr-shrinks", 0.0),),
    ),
    Kept(
        "31685, with a slow disk",
        41594,
        "moves",
        16.0,
        (
            Fault(0.5, "late-join", "leader", "3", 2.1109, ("t", 1)),
            Fault(1.5544, "bounce", "3", "follower", 7.7579, ("t", 1)),
            Fault(2.0054, "bounce", "1", "controller", 5.3488, ("t", 1), "isr-grows", 0.039352),
            Fault(7.3775, "disk-slow", "3", "2", 11.396, ("t", 0)),
            Fault(14.322, "vanish", "follower", "1", 2.4976, ("t", 1)),
        ),
    ),
    Kept(
        "settings that changed while a broker started did not reach its logs",
        *(110192, "directories", 16.0),
    ),
    Kept(
        "(the check) records that a leader took while its clock was ahead are hidden by followers until then",
        110376,
        "nearest",
        16.0,
        (Fault(2.168, "clock", "leader", "2", 7.963, ("t", 1)),),
    ),
    Kept(
        "a record that was accepted while its renewal was to be sent came again",
        *(120056, "shares", 16.0),
    ),
    Kept(
        "(the check) a timer that repeats as often as the looks was due at each of them",
        *(130128, "clients", 2.0, ()),
    ),
)
