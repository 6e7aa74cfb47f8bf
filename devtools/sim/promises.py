"""What a share group has promised about each record, and whether a delivery breaks it.

A client knows when it asked for a record and when it had it, not when the broker locked it in between. And a broker
that is cut off may go on delivering after another one leads. So a delivery counts against a promise only if it was
asked for after the promise was answered, of a broker that knew of no earlier leader epoch than the tree did then:
either it is the leader that gave the promise, or one that has read what that leader stored.
"""

from __future__ import annotations

from typing import Final, NamedTuple

ROUNDING_S: Final = 0.002  # times of brokers are whole milliseconds

Key = tuple[str, int, int]  # topic, partition, offset


class Promise(NamedTuple):
    answered_s: float
    epoch: int  # of the leader, according to the tree
    until_s: float = 0.0  # not delivered before; 0: never again


class Promises:
    """Never again after an accept or a reject that was answered; never before the time of a release that was."""

    def __init__(self) -> None:
        self.came: set[str] = set()
        self.accepted: set[str] = set()  # perhaps: a member asked for that
        self.rejected: set[str] = set()  # likewise
        self._given: dict[Key, Promise] = {}
        self._releases: dict[tuple[str, Key], tuple[float, float]] = {}  # by member: when, and the delay

    def delivered(self, key: Key, value: str, count: int, asked_s: float, epoch: int, now_s: float) -> tuple[str, str]:
        """The invariant that is broken, and how; empty if none is. `epoch`: as the broker knew it at `asked_s`."""
        self.came.add(value)
        promise = self._given.get(key)
        if promise is None or asked_s <= promise.answered_s or epoch < promise.epoch:
            return "", ""
        when = f"{value} at {key} came at {now_s:.3f} s (delivery {count}), asked for at {asked_s:.3f} s"
        if not promise.until_s:
            return "NothingTwice", f"{when}, after its end was answered at {promise.answered_s:.3f} s"
        if now_s < promise.until_s - ROUNDING_S:
            return "NeverEarly", f"{when}, not to be delivered before {promise.until_s:.3f} s"
        del self._given[key]
        return "", ""

    def releasing(self, member: str, key: Key, delay_s: float, now_s: float) -> None:
        self._releases[member, key] = (now_s, delay_s)

    def answered(self, member: str, key: Key, kind: str, epoch: int, now_s: float) -> None:
        """Without an error. The member may say so late, when others have had the record since."""
        if kind in ("accept", "reject"):
            self._given[key] = Promise(now_s, epoch)
        elif kind == "release":
            asked_s, delay_s = self._releases.pop((member, key), (now_s, 0.0))
            before = self._given.get(key)
            if delay_s > 0 and (before is None or 0 < before.until_s < asked_s + delay_s):
                self._given[key] = Promise(now_s, epoch, asked_s + delay_s)

    def missing(self, wanted: set[str], letters: set[str] | None) -> list[str]:
        """Records that no member has finished. `letters`: those with a dead letter, which every rejected record must
        have; None if the group wants none."""
        return sorted(wanted - self.accepted - (self.rejected if letters is None else letters))
