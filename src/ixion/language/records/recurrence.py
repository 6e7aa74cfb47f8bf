"""Computes when a recurring record is due next.

    x-schedule-every   5m, 90s, 1h30m, 1d; also "@every 5m"            at least one second
    x-schedule-cron    five fields, or six with seconds in front       in the zone of x-schedule-tz, or UTC
    x-schedule-until   the last time at which it may be due

After downtime the broker delivers the record once, and then at its next regular time. `cronsim` parses cron
expressions: a small library without dependencies that handles daylight saving time. The first record that needs it
imports it.
"""

from __future__ import annotations

import re
from typing import Any, Final

LEAST_MS: Final = 1_000
MOST_MS: Final = 366 * 24 * 3_600_000
MOST_BYTES: Final = 255  # of an expression
UNITS: Final = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
PART: Final = re.compile(r"([0-9]{1,12})(ms|s|m|h|d)")
MOST_KNOWN: Final = 1_000  # cached expressions that were parsed and found valid
MISSING: Final = "needs the package cronsim on the broker: pip install cronsim"

known: dict[tuple[bytes, bytes], bool] = {}


def every_ms_of(value: bytes) -> int:
    """The interval in milliseconds; -1 if the value is not an interval."""
    text = value[: MOST_BYTES + 1].decode("ascii", "replace").removeprefix("@every").strip()
    total = 0
    at = 0
    for part in PART.finditer(text):
        if part.start() != at:
            return -1
        total += int(part[1]) * UNITS[part[2]]
        at = part.end()
    return total if at == len(text) and LEAST_MS <= total <= MOST_MS else -1


def cron_fault(cron: bytes, zone: bytes) -> str:
    """What is wrong with the expression or the zone; empty if nothing is."""
    if (cron, zone) in known:
        return ""
    if len(cron) > MOST_BYTES or len(zone) > MOST_BYTES:
        return f"has more than {MOST_BYTES} bytes"
    try:
        following(cron, zone, 0)
    except ImportError:
        return MISSING
    except (ValueError, KeyError, OSError):
        return "is not a cron expression of five or six fields, or x-schedule-tz is not a time zone"
    if len(known) < MOST_KNOWN:
        known[cron, zone] = True
    return ""


def following(cron: bytes, zone: bytes, after_ms: int) -> int:
    """The first time after `after_ms` that matches the cron expression; -1 if none does."""
    from datetime import UTC, datetime, timedelta
    from importlib import import_module
    from zoneinfo import ZoneInfo

    cronsim: Any = import_module("cronsim")  # by name: the build must not need this optional package
    where: Any = ZoneInfo(zone.decode("ascii")) if zone else UTC
    begin = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=after_ms)
    try:
        times = cronsim.CronSim(cron.decode("ascii"), begin.astimezone(where))
    except cronsim.CronSimError as error:
        raise ValueError(str(error)) from error
    for moment in times:
        return int(moment.timestamp() * 1000)
    return -1


def next_due(every_ms: int, cron: bytes, zone: bytes, until_ms: int, due_ms: int, now_ms: int) -> int:
    """The next due time after now of a record that was due at `due_ms`; -1 if it is never due again."""
    if every_ms > 0:
        found = due_ms + every_ms * max((now_ms - due_ms) // every_ms + 1, 1)
    else:
        found = following(cron, zone, max(now_ms, due_ms))
    return -1 if 0 <= until_ms < found else found
