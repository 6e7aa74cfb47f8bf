"""Counters of a controller since its broker started, over all its terms, for metrics."""

from __future__ import annotations

from ixion.broker.controller.cluster.leadership import NO_LEADER, Leadership


class ControllerFigures:
    def __init__(self) -> None:
        self.elections: dict[str, int] = {}  # leaders that moved, by reason
        self.unclean = 0  # those that moved to an out-of-sync replica: records may be lost
        self.terms = 0  # how often this broker was elected

    def elected(self, before: Leadership, after: Leadership, why: str) -> None:
        if after.leader in (before.leader, NO_LEADER):
            return
        self.elections[why] = self.elections.get(why, 0) + 1
        if after.leader not in before.isr:
            self.unclean += 1
