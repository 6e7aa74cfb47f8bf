"""Durations as people write them: "500ms", "30s", "10 minutes", "7 days"."""

from __future__ import annotations

import re
from typing import Final

_UNITS_MS: Final = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_LONG: Final = {
    "millisecond": "ms",
    "sec": "s",
    "second": "s",
    "min": "m",
    "minute": "m",
    "hour": "h",
    "day": "d",
}


def parse_duration_ms(text: str) -> int | None:
    """Milliseconds; None if TEXT is no duration."""
    match = re.fullmatch(r"\s*(\d+)\s*([a-z]+)\s*", text.lower())
    if match is None:
        return None
    unit = match[2]
    unit = _LONG.get(unit) or _LONG.get(unit.removesuffix("s")) or unit
    return int(match[1]) * _UNITS_MS[unit] if unit in _UNITS_MS else None


def spark_interval(milliseconds: int) -> str:
    """The spelling for Spark's watermarks, windows and triggers."""
    return f"{milliseconds} milliseconds"
