"""Example orders to try pipelines with: most are good, some late, duplicate or broken."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

_COUNTRIES: Final = ("AT", "DE", "FR", "IT", "PL")
_BEGIN: Final = datetime(2026, 1, 31, 8, 0, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    key: bytes
    value: bytes


def order_events(count: int, seed: int = 1) -> Iterator[Event]:
    """COUNT events, the same for the same SEED; an order every second or so.

    Of a hundred, about five are duplicates, five are up to an hour late and three are broken: truncated, with words for
    an amount, or with a negative amount.
    """
    chance = random.Random(seed)
    clock = _BEGIN
    last: Event | None = None
    for number in range(count):
        clock += timedelta(milliseconds=chance.randrange(2000))
        dice = chance.random()
        if dice < 0.05 and last is not None:
            yield last
            continue
        order: dict[str, object] = {
            "order_id": f"o{number:06d}",
            "customer": f"c{chance.randrange(200):03d}",
            "country": chance.choice(_COUNTRIES),
            "amount": round(chance.uniform(1, 200), 2),
            "at": (clock - timedelta(minutes=chance.randrange(60) if dice > 0.95 else 0)).isoformat(),
        }
        last = Event(key=str(order["customer"]).encode(), value=_spoilt(order, dice))
        yield last


def _spoilt(order: dict[str, object], dice: float) -> bytes:
    if 0.05 <= dice < 0.06:
        return json.dumps(order).encode()[:40]
    if 0.06 <= dice < 0.07:
        order = {**order, "amount": "a lot"}
    elif 0.07 <= dice < 0.08:
        order = {**order, "amount": -1.0}
    return json.dumps(order).encode()
