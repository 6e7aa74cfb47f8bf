"""What a leader knows of one follower: how far it has fetched, and when it last had caught up.

A follower has caught up as of a moment if it now has everything that the leader had at that moment. It never fetches
from beyond the end, so the leader compares with its own end at the *previous* fetch:

    fetch at 100 ms from offset 40, leader's end 50     not caught up
    fetch at 150 ms from offset 50, leader's end 70     it has all of 100 ms: caught up as of 100 ms
    fetch at 200 ms from offset 70, leader's end 70     it has everything: caught up as of now
"""

# This module is compiled: see setup.py.

from __future__ import annotations

from typing import Final

NEVER_MS: Final = -(1 << 60)


class Follower:
    def __init__(self, broker_id: int) -> None:
        self.broker_id = broker_id
        self.broker_epoch = -1  # of the registration under which it fetched last; -1: not known
        self.end_offset = -1  # -1: it has not fetched from this leader
        self.log_start = -1
        self.caught_up_ms = NEVER_MS
        self.fetched_ms = 0
        self.leader_end_then = -1  # the leader's end at its last fetch
        self.fetches = 0  # since this leader knows it

    def reset(self, now_ms: int, in_sync: bool) -> None:
        """Begin a new leader's term. An in-sync follower gets replica.lag.time.max.ms to fetch."""
        self.end_offset = -1
        self.log_start = -1
        self.caught_up_ms = now_ms if in_sync else NEVER_MS
        self.fetched_ms = 0
        self.leader_end_then = -1

    def fetched(self, offset: int, log_start: int, leader_end: int, now_ms: int) -> None:
        if offset >= leader_end:
            self.caught_up_ms = max(self.caught_up_ms, now_ms)
        elif offset >= self.leader_end_then >= 0:
            self.caught_up_ms = max(self.caught_up_ms, self.fetched_ms)
        self.end_offset = offset
        self.log_start = log_start
        self.leader_end_then = leader_end
        self.fetched_ms = now_ms
        self.fetches += 1

    def lags(self, leader_end: int, now_ms: int, max_lag_ms: int) -> bool:
        """Whether it has been behind for too long."""
        return self.end_offset != leader_end and now_ms - self.caught_up_ms > max_lag_ms
