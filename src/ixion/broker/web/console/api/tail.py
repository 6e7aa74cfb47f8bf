"""The live tail of a topic: records as they come, as server-sent events."""

from __future__ import annotations

import asyncio
import json
from typing import Final

from ixion.broker.web.console.api.cost import Cost
from ixion.broker.web.console.api.record_rows import RecordRow
from ixion.broker.web.console.api.records import Wanted, decoded, leader_elsewhere, places_of, read, wanted_of
from ixion.broker.web.console.inside import Inside
from ixion.broker.web.request import HttpRequest
from ixion.broker.web.response import Outlet, RefusedError, Stream
from ixion.language.model.errors import ErrorCode

TAIL_WAIT_MS: Final = 15_000
TAIL_PAUSE_S: Final = 0.25
ELSEWHERE_PAUSE_S: Final = 1.0
TAIL_BYTES: Final = 256 << 10
TAIL_RECORDS: Final = 100  # of one event; what is left out is counted


async def tail(inside: Inside, request: HttpRequest) -> Stream:
    """Records as they come. The id of an event is where each partition goes on, so a browser that reconnects misses
    none."""
    topic, wanted, _ = wanted_of(inside, request)
    places, _ = await places_of(inside, topic, wanted.numbers)
    offsets = {place["partition"]: place["end"] for place in places}
    for part in request.headers.get("last-event-id", request.query.get("after", ""))[:2000].split(","):
        number, _, offset = part.partition(":")
        is_place = part.isascii() and number.isdigit() and offset.isdigit() and len(offset) < 19
        if is_place and int(number[:9]) in offsets:
            offsets[int(number[:9])] = int(offset)

    async def feed(outlet: Outlet) -> None:
        await Tail(inside, wanted, offsets, outlet).run()

    return Stream(feed)


class Tail:
    """One fetch waits for each partition; what comes is sent in one event every quarter of a second."""

    def __init__(self, inside: Inside, wanted: Wanted, offsets: dict[int, int], outlet: Outlet) -> None:
        self._inside = inside
        self._wanted = wanted
        self._offsets = offsets
        self._outlet = outlet
        self._rows: list[RecordRow] = []
        self._left_out = 0
        self._came = asyncio.Event()

    async def run(self) -> None:
        await self._outlet.send(b"retry: 2000\n\n")
        async with asyncio.TaskGroup() as group:
            for number in self._offsets:
                group.create_task(self._follow(number))
            while True:
                try:
                    async with asyncio.timeout(TAIL_WAIT_MS / 1000):
                        await self._came.wait()
                except TimeoutError:
                    await self._outlet.send(b": still here\n\n")
                    continue
                self._came.clear()
                rows, self._rows = self._rows, []
                left_out, self._left_out = self._left_out, 0
                rows.sort(key=lambda row: (row["timestamp"], row["offset"]))
                data = json.dumps({"records": rows, "left_out": left_out}, ensure_ascii=False)
                here = ",".join(f"{number}:{offset}" for number, offset in self._offsets.items())
                await self._outlet.send(f"id: {here}\nevent: records\ndata: {data}\n\n".encode())
                await asyncio.sleep(TAIL_PAUSE_S)

    async def _follow(self, number: int) -> None:
        wanted = self._wanted
        while True:
            offset = self._offsets[number]
            try:
                result = await read(self._inside, wanted.topic, number, offset, TAIL_BYTES, TAIL_WAIT_MS)
            except RefusedError:  # its leader changes, or does not answer
                await asyncio.sleep(ELSEWHERE_PAUSE_S)
                continue
            if result.code == ErrorCode.OFFSET_OUT_OF_RANGE:
                self._offsets[number] = max(result.log_start, 0)
                await asyncio.sleep(TAIL_PAUSE_S)
                continue
            if leader_elsewhere(self._inside, wanted.topic, number) is not None and not len(result.records):
                await asyncio.sleep(ELSEWHERE_PAUSE_S)  # a fetch that waits would hold up all others to that broker
                continue
            part = await decoded(self._inside, result, wanted._replace(cost=Cost()), offset, 1 << 62, 1 << 30)
            if part.next_offset > offset:
                self._offsets[number] = part.next_offset
                room = max(TAIL_RECORDS - len(self._rows), 0)
                self._rows += part.rows[-room:] if room else []
                self._left_out += max(len(part.rows) - room, 0)
                if part.rows:
                    self._came.set()
                await asyncio.sleep(TAIL_PAUSE_S)
