"""The timing wheel of a broker and the delayed records on it, as JSON, for `ixion wheel --broker`."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

from ixion.broker.schedules.figures import BOUNDS_MS
from ixion.broker.web.process import resident_bytes

if TYPE_CHECKING:
    from ixion.broker.web.families import Sources


def wheel_page(title: str, sources: Sources) -> bytes:
    now_ms = sources.clock_ms()
    timer = sources.timer.snapshot()
    figures = sources.schedules.figures
    return json.dumps(
        {
            "title": title,
            "timer": timer._asdict() | {"levels": [level._asdict() for level in timer.levels]},
            "cpu_seconds": time.process_time(),
            "memory_bytes": resident_bytes(),
            "lateness": {"bounds_ms": BOUNDS_MS, "counts": figures.lateness},
            "accepted": figures.accepted,
            "delivered": figures.delivered,
            "schedules": [
                {
                    "topic": each.partition.topic,
                    "partition": each.partition.number,
                    "waiting": state.count,
                    "bytes": state.size,
                    "near": state.pending.near,
                    "overdue_ms": state.pending.overdue_ms(now_ms),
                    "next_ms": max(state.pending.wake_ms() - now_ms, 0) if state.count else None,
                }
                for each in sources.schedules
                if (state := each.state) is not None
            ],
        }
    ).encode()
