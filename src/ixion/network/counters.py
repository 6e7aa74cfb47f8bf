"""What the network counts, all listeners together. Numbers only grow; sizes of the moment are in the snapshot."""

from __future__ import annotations

from ixion._native import i64


class Counters:
    def __init__(self) -> None:
        self.accepted: i64 = 0
        self.requests: i64 = 0
        self.responses: i64 = 0  # requests that need none, acks=0, are not among them
        self.bytes_in: i64 = 0
        self.bytes_out: i64 = 0
        self.watches: i64 = 0  # times that the loop began to look for the next request without going to sleep
        self.watches_in_vain: i64 = 0  # of them, those that found none, or no time for it
        self.closed: dict[str, int] = {}  # connections, by reason

    def count_closed(self, reason: str) -> None:
        self.closed[reason] = self.closed.get(reason, 0) + 1
