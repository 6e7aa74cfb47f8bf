"""The current state of a purgatory, for metrics and views."""

from __future__ import annotations

from typing import NamedTuple

from ixion.timer.snapshot import TimerSnapshot


class PurgatorySnapshot(NamedTuple):
    name: str
    watched: int  # entries in watch lists; an operation that watches three keys counts three times
    delayed: int  # operations waiting for their condition or their timeout
    keys: int  # keys that have a watch list
    completed_at_once: int  # by the first or second try, before they had to wait
    completed_by_check: int  # by check_and_complete
    purged: int  # entries of completed operations removed from watch lists by purges
    failed: int  # operations that raised
    timer: TimerSnapshot
