"""The state of a timer at one time, for terminal views, pages and metrics. Its values do not change."""

from __future__ import annotations

from typing import NamedTuple


class LevelSnapshot(NamedTuple):
    level: int  # 1 is the finest
    tick_ms: int
    span_ms: int
    current_ms: int  # position of the hand
    hand: int  # index of the bucket under the hand
    counts: tuple[int, ...]  # tasks waiting in each bucket
    arrived: int  # tasks ever put into this level
    fell_in: int  # tasks that fell from a coarser level


class TimerSnapshot(NamedTuple):
    name: str
    now_ms: int
    size: int  # tasks waiting
    levels: tuple[LevelSnapshot, ...]
    next_due_ms: int | None  # when the first queued bucket is due; None when none is queued
    queued_buckets: int
    added: int
    expired: int  # handed to the executor
    cancelled: int  # taken out while waiting
    fell: int  # moves from a level to a finer one
    failed: int  # tasks that raised
