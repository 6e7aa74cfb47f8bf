"""Counters of the network, all listeners together. They only grow; current sizes are in the snapshot."""

# This module is compiled: see setup.py.

from __future__ import annotations

from ixion._native import i64


class Counters:
    def __init__(self) -> None:
        self.accepted: i64 = 0
        self.requests: i64 = 0
        self.responses: i64 = 0  # without requests that need none (acks=0)
        self.bytes_in: i64 = 0
        self.bytes_out: i64 = 0
        self.busy_polls: i64 = 0  # busy polls begun
        self.busy_polls_in_vain: i64 = 0  # busy polls that saw no request, or were preempted
        self.closed: dict[str, int] = {}  # connections, by reason

    def count_closed(self, reason: str) -> None:
        self.closed[reason] = self.closed.get(reason, 0) + 1
