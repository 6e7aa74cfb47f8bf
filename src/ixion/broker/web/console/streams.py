"""Server-sent events: the wheel, four times a second, and what happens."""

from __future__ import annotations

import asyncio
import json
from typing import Final

from ixion.broker.web.console.api.wheel import snapshot
from ixion.broker.web.console.inside import Inside
from ixion.broker.web.request import HttpRequest
from ixion.broker.web.response import Outlet, Stream

WHEEL_S: Final = 0.25
LOOK_S: Final = 1.0
QUIET: Final = 15  # looks without an event until a sign of life


async def wheel_events(inside: Inside, _request: HttpRequest) -> Stream:
    """Snapshots. A browser that reconnects gets the present one: there is nothing to make up for."""

    async def make() -> bytes:
        now = snapshot(inside)
        return f"id: {now['now_ms']}\nevent: wheel\ndata: {json.dumps(now, separators=(',', ':'))}\n\n".encode()

    async def feed(outlet: Outlet) -> None:
        await outlet.send(b"retry: 1000\n\n")
        while True:
            await outlet.send(await inside.history.shared("wheel", make, WHEEL_S * 0.8))
            await asyncio.sleep(WHEEL_S)

    return Stream(feed)


async def events(inside: Inside, request: HttpRequest) -> Stream:
    """What happens, in plain words. A browser that reconnects gets what it has missed, as far as it is remembered."""
    given = request.headers.get("last-event-id", request.query.get("after", ""))
    last = int(given) if given.isascii() and given.isdigit() and len(given) < 19 else -1

    events = inside.history.events
    is_known = bool(events) and last <= events[-1].id  # else it is of an earlier start, before the clock was set back

    async def feed(outlet: Outlet) -> None:
        seen = last if is_known else -1
        quiet = 0
        await outlet.send(b"retry: 2000\n\n")
        while True:
            new = [each for each in events if each.id > seen]
            for each in new:
                data = json.dumps(each._asdict(), ensure_ascii=False)
                await outlet.send(f"id: {each.id}\nevent: happened\ndata: {data}\n\n".encode())
                seen = each.id
            quiet = 0 if new else quiet + 1
            if quiet == QUIET:
                quiet = 0
                await outlet.send(b": still here\n\n")
            await asyncio.sleep(LOOK_S)

    return Stream(feed)
