"""Where to begin reading, as text: an end, an offset, a number of records before the end, or a time.

earliest, beginning, start  the first record
latest, end                 only new records
stored                      where the group has committed (with a group only)
120                         offset 120 of every partition (or the nearest offset that exists)
-10                         ten records before the end of every partition
@2026-05-01T12:00           the first record of that time or later; local time unless it ends in Z or +02:00; the @ may
                            be left out
@1767225600000              the same, in milliseconds since 1970
@-1h                        an hour ago; the units are s, m, h, d and w
"""

from __future__ import annotations

from typing import Final, NamedTuple

LATEST: Final = -1  # in place of a time
EARLIEST: Final = -2
UNITS_S: Final = {"s": 1, "m": 60, "h": 3_600, "d": 86_400, "w": 604_800}
LARGEST_MS: Final = (1 << 63) - 1  # as a timestamp is stored; no record is that late


class Start(NamedTuple):
    """One of four: a time (or one of the two ends), an offset, a distance from the end, or what the group committed."""

    time_ms: int = EARLIEST
    offset: int | None = None
    before_end: int | None = None
    stored: bool = False

    @property
    def is_time(self) -> bool:
        """Whether a broker must be asked for the offset of a time."""
        return self.offset is None and self.before_end is None and self.time_ms not in (EARLIEST, LATEST)


def parse_start(text: str) -> Start:
    """ValueError, naming the possible forms, if it is none of them."""
    word = text.strip().lower()
    if word in ("earliest", "beginning", "start"):
        return Start(EARLIEST)
    if word in ("latest", "end"):
        return Start(LATEST)
    if word == "stored":
        return Start(stored=True)
    if is_number(word.removeprefix("-")):
        return Start(before_end=int(word[1:])) if word.startswith("-") else Start(offset=int(word))
    time = text.strip().removeprefix("@")
    if word.startswith("@-"):
        return Start(ago_ms(word))
    return Start(min(int(time), LARGEST_MS) if is_number(time) else parse_time_ms(time))


def ago_ms(word: str) -> int:
    """The time that `@-90m` means: so long before now."""
    from time import time

    amount, unit = word[2:-1], word[-1:]
    if not is_number(amount) or unit not in UNITS_S:
        raise ValueError(f"{word!r} is not a time ago; write @-90m, with one of the units {', '.join(UNITS_S)}")
    return max(0, int((time() - int(amount) * UNITS_S[unit]) * 1000))


def is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()


def parse_time_ms(text: str) -> int:
    from datetime import datetime  # takes 2 ms, and most starts need no time

    try:
        return int(datetime.fromisoformat(text.strip()).timestamp() * 1000)
    except (ValueError, OverflowError):
        choices = "earliest, latest, stored, an offset, -N, a time such as 2026-05-01T12:00, @-1h or @MILLISECONDS"
        raise ValueError(f"{text!r} is not a place to begin; use {choices}") from None


def between(start: Start, first: int, end: int, at_time: int) -> int:
    """The offset that a start means in a partition with these ends; `at_time` is the offset of its time, or -1."""
    if start.offset is not None:
        return min(max(start.offset, first), end)
    if start.before_end is not None:
        return max(end - start.before_end, first)
    if start.time_ms == EARLIEST:
        return first
    return end if at_time < 0 else at_time
