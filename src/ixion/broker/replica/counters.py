"""Counters of the replicas, since the start."""

# This module is compiled: see setup.py.

from __future__ import annotations

from ixion.language.model.errors import ErrorCode


class Counters:
    def __init__(self) -> None:
        self.messages_in = 0
        self.bytes_in = 0
        self.bytes_out = 0
        self.copied_in = 0  # bytes appended as a follower
        self.copied_out = 0  # bytes given to followers; in bytes_out, too
        self.isr_shrinks = 0
        self.isr_expands = 0
        self.fetches = 0
        self.fetch_checks = 0  # partitions checked for waiting fetches
        self.failed_produces: dict[ErrorCode, int] = {}  # partitions of requests, by the code in their answer
        self.failed_fetches: dict[ErrorCode, int] = {}

    def produce_failed(self, code: ErrorCode) -> None:
        self.failed_produces[code] = self.failed_produces.get(code, 0) + 1

    def fetch_failed(self, code: ErrorCode) -> None:
        self.failed_fetches[code] = self.failed_fetches.get(code, 0) + 1
