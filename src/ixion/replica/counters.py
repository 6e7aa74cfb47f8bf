"""What went in and out of the replicas, since the start."""

from __future__ import annotations


class Counters:
    def __init__(self) -> None:
        self.messages_in = 0
        self.bytes_in = 0
        self.bytes_out = 0
        self.fetches = 0
        self.failed_produces = 0
        self.failed_fetches = 0
