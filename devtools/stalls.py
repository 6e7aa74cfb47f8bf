"""Reads a broker's log for turns of its event loop that took too long, see `ixion.timer.stall_watch`.

Only processor time counts, so a busy machine makes no stall.
"""

from __future__ import annotations

import re
from typing import Final

from ixion.cli.main import build_kind

LIMIT_MS: Final = 50 if build_kind() == "compiled" else 250  # interpreted code takes five times as long or so
_LINE: Final = re.compile(r".*the event loop was held up .*")
_BUSY: Final = re.compile(r"(\d+) ms of processor time")


def stalls(logged: str, limit_ms: int = LIMIT_MS) -> list[str]:
    """The lines of `logged` that name a stall over the limit."""
    return [line for line in _LINE.findall(logged) if any(int(ms) > limit_ms for ms in _BUSY.findall(line))]
