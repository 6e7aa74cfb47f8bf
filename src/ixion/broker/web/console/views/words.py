"""Numbers as people read them."""

from __future__ import annotations

import time
from typing import Final

NONE: Final = "\u2013"  # a dash: no value
UNITS: Final = ("B", "kB", "MB", "GB", "TB", "PB")
SPANS: Final = (
    (86_400_000, "d", 3_600_000, "h"),
    (3_600_000, "h", 60_000, "min"),
    (60_000, "min", 1_000, "s"),
)


def size(count: float | None) -> str:
    if count is None:
        return NONE
    number = float(count)
    for unit in UNITS[:-1]:
        if abs(number) < 1000:
            return f"{number:.0f} {unit}" if unit == "B" or number >= 100 else f"{number:.1f} {unit}"
        number /= 1000
    return f"{number:.1f} {UNITS[-1]}"


def span(ms: float | None) -> str:
    """312 ms, 4.2 s, 3 min 20 s, 5 h 12 min."""
    if ms is None:
        return NONE
    if ms < 0:
        return f"{span(-ms)} over"
    for unit_ms, unit, rest_ms, rest in SPANS:
        if ms >= unit_ms:
            whole, left = divmod(int(ms), unit_ms)
            return f"{whole} {unit} {left // rest_ms} {rest}" if left >= rest_ms else f"{whole} {unit}"
    if ms >= 10_000:
        return f"{ms / 1000:.0f} s"
    if ms >= 1000:
        return f"{ms / 1000:.1f} s"
    return f"{ms:.0f} ms" if ms >= 10 or ms == int(ms) else f"{ms:.1f} ms"


def count(number: float | None) -> str:
    return NONE if number is None else f"{number:,.0f}"


def short(number: float) -> str:
    """1,204 and 12.3k and 4.5M."""
    for unit, scale in (("G", 1e9), ("M", 1e6), ("k", 1e3)):
        if abs(number) >= scale * 10:
            return f"{number / scale:.1f}{unit}"
    return f"{number:,.0f}" if number >= 100 or number == int(number) else f"{number:.1f}"


def measure(number: float, unit: str) -> str:
    if unit == "B":
        return size(number)
    if unit == "B/s":
        return f"{size(number)}/s"
    if unit == "ms":
        return span(number) if number else NONE
    if unit == "%":
        return f"{number:.1f} %"
    return f"{short(number)} {unit}".strip()


def clock(ms: int) -> str:
    """A time of today by the hour, an older one with its date; in UTC, as the log has it."""
    if ms < 0:
        return NONE
    moment = time.gmtime(ms / 1000)
    if moment[:3] == time.gmtime()[:3]:
        return f"{time.strftime('%H:%M:%S', moment)}.{ms % 1000:03}"
    return time.strftime("%Y-%m-%d %H:%M:%S", moment)


def of(number: int, noun: str) -> str:
    """1 partition, 2 partitions."""
    return f"{number:,} {noun if number == 1 else noun + 's'}"


def sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}{'' if text.endswith(('.', '!', '?')) else '.'}"
