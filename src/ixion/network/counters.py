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
        self.busy_polls: i64 = 0  # times that the loop began to poll for the next request
        self.busy_polls_in_vain: i64 = 0  # of them, those that saw no request, or were preempted
        self.closed: dict[str, int] = {}  # connections, by reason

    def count_closed(self, reason: str) -> None:
        self.closed[reason] = self.closed.get(reason, 0) + 1
