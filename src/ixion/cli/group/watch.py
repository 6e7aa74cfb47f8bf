"""`ixion group describe --watch`: the lag of a group over time.

    TIME      TOPIC   COMMITTED  END   LAG  LAG/S  READ/S
    12:00:02  orders       1700  2000  300  -50.0   150.0

A line per topic and interval: how much is left to read, how fast that changes, and how fast the group reads.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, Final

from ixion.cli.group.commands import progress_rows, queue_rows
from ixion.cli.output import show_json
from ixion.clients.admin.groups import describe_groups
from ixion.clients.admin.runner import AdminRunner

WIDTHS: Final = {"time": 8, "topic": 24, "members": 7, "committed": 12, "end": 12, "lag": 10, "lag/s": 9, "read/s": 9}


def watch_group(
    admin: AdminRunner,
    group: str,
    every_s: float,
    as_json: bool,
    *,
    sleep: Callable[[float], None] = time.sleep,
    clock: Callable[[], float] = time.time,
) -> None:
    """Until Ctrl-C."""
    before: dict[str, dict[str, Any]] = {}
    at_s = clock()
    if not as_json:
        print("  ".join(name.upper().ljust(width) for name, width in WIDTHS.items()).rstrip())
    try:
        while True:
            now_s = clock()
            rows = {row["topic"]: row for row in by_topic(admin, group, now_s)}
            for topic, row in rows.items():
                seconds, old = now_s - at_s, before.get(topic)
                row["lag/s"] = None if old is None or seconds <= 0 else round((row["lag"] - old["lag"]) / seconds, 1)
                row["read/s"] = (
                    None if old is None or seconds <= 0 else round((row["committed"] - old["committed"]) / seconds, 1)
                )
                if as_json:
                    show_json([{"group": group, **row}])
                else:
                    print(line(row))
            before, at_s = rows, now_s
            sleep(every_s)
    except KeyboardInterrupt:
        pass  # the usual way to end it


def by_topic(admin: AdminRunner, group: str, now_s: float) -> list[dict[str, Any]]:
    found = admin.run(describe_groups, [group])[group]
    if found.kind == "share":
        rows = [{**row, "committed": row["start"]} for row in queue_rows(admin, found)]
    else:
        rows = progress_rows(admin, found)
    topics: dict[str, dict[str, Any]] = {}
    for row in rows:
        clock = time.strftime("%H:%M:%S", time.localtime(now_s))
        empty = {
            "time": clock,
            "topic": row["topic"],
            "members": len(found.members),
            "committed": 0,
            "end": 0,
            "lag": 0,
        }
        total = topics.setdefault(row["topic"], empty)
        for name in ("committed", "end", "lag"):
            total[name] += row[name] or 0
    return list(topics.values())


def line(row: dict[str, Any]) -> str:
    cells = [("-" if row[name] is None else str(row[name])).ljust(width) for name, width in WIDTHS.items()]
    return "  ".join(cells).rstrip()
