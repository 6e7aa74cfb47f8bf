"""The figures of the last hour, and what happened, in bounded memory.

Every `STEP_S` seconds one value of each curve goes into a ring of `KEPT`: 30 KB in all, and some 100 µs of work. What
happened is found by comparing two such looks, so that no part of the broker reports anything: "12 connections were
closed: not Kafka's protocol" is the counter of that reason, read twice.

`shared` computes something once for all pages that ask for it at about the same time.
"""

from __future__ import annotations

import asyncio
import os
import time
from array import array
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar

from ixion.broker.web.console.api.figures import in_short_turns
from ixion.broker.web.console.changes import Change, Look, changes, look
from ixion.broker.web.console.lags import STEP_S as LAG_STEP_S
from ixion.broker.web.console.lags import Lags
from ixion.broker.web.process import resident_bytes

if TYPE_CHECKING:
    from ixion.broker.web.console.inside import Inside
    from ixion.timer.task import TimerTask

T = TypeVar("T")

STEP_S: Final = 5
KEPT: Final = 720  # an hour
EVENTS: Final = 200
MINUTE: Final = 12  # steps
SHARED_S: Final = 2.0
MOST_SHARED: Final = 50  # results that are kept for other pages
SHOWN_POINTS: Final = 240  # of a curve on a page: more than it has pixels for

# name, unit
CURVES: Final = (
    ("records in", "/s"),
    ("bytes in", "B/s"),
    ("bytes out", "B/s"),
    ("requests", "/s"),
    ("produce p99", "ms"),
    ("connections", ""),
    ("processor", "%"),
    ("memory", "B"),
    ("tasks on the wheel", ""),
    ("operations waiting", ""),
)
PRODUCE: Final = 0


class Event(NamedTuple):
    id: int
    at_ms: int
    text: str
    link: str


class History:
    step_s: Final = STEP_S

    def __init__(self, inside: Callable[[], Inside]) -> None:
        self._inside = inside
        self.started_ms = int(time.monotonic() * 1000)
        self.events: deque[Event] = deque(maxlen=EVENTS)
        self.looks = 0  # so far; the last is at (looks - 1) % KEPT
        self._rings = {name: array("f", bytes(4 * KEPT)) for name, _ in CURVES}
        self._buckets: deque[dict[int, tuple[int, ...]]] = deque(maxlen=MINUTE + 1)
        self.lags = Lags()
        self._last: Look | None = None
        self._counters: tuple[float, ...] = ()
        self._next_id = time.time_ns() // 1_000_000  # greater than those of an earlier start
        self._task: TimerTask | None = None
        self._looking: asyncio.Task[None] | None = None
        self._shared: dict[str, tuple[float, asyncio.Future[Any]]] = {}

    def start(self) -> None:
        self._task = self._inside().timer.call_later(STEP_S * 1000, self.look)

    def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
        if self._looking is not None:
            self._looking.cancel()

    def look(self) -> asyncio.Task[None]:
        """Take one value of each curve; then, in turns, see what has changed."""
        inside = self._inside()
        self.start()
        self._sample(inside)
        self._looking = inside.timer.loop.create_task(self._compare(inside))
        return self._looking

    def _sample(self, inside: Inside) -> None:
        counters, network = inside.replicas.counters, inside.network()
        spent = os.times()
        now = (
            time.monotonic(),
            float(counters.messages_in),
            float(counters.bytes_in),
            float(counters.bytes_out),
            float(network.requests),
            spent.user + spent.system,
        )
        before, self._counters = self._counters or now, now
        seconds = max(now[0] - before[0], 1e-3)
        messages, came, went, requests, processor = (
            (new - old) / seconds for new, old in zip(now[1:], before[1:], strict=True)
        )
        buckets = {key: tuple(times.buckets) for key, times in inside.times.by_key().items()}
        produced = difference(buckets.get(PRODUCE), self._buckets[-1].get(PRODUCE) if self._buckets else None)
        self._buckets.append(buckets)
        values = (
            messages,
            came,
            went,
            requests,
            (percentile_ms(produced, inside.bounds_ns) or 0.0),
            float(sum(network.connections.values())),
            processor * 100,
            float(resident_bytes() or 0),
            float(inside.timer.size),
            float(sum(each.delayed for each in inside.purgatories())),
        )
        at = self.looks % KEPT
        for (name, _), value in zip(CURVES, values, strict=True):
            self._rings[name][at] = value
        self.looks += 1

    async def _compare(self, inside: Inside) -> None:
        now = await in_short_turns(look(inside, self._last))
        before, self._last = self._last, now
        if before is not None:
            for change in changes(before, now):
                self.add(change)
        if (self.looks - 1) % (LAG_STEP_S // STEP_S) == 0:
            await in_short_turns(self.lags.look(inside))

    def add(self, change: Change) -> None:
        self.events.append(Event(self._next_id, self._inside().clock_ms(), change.text[:300], change.link))
        self._next_id += 1

    def last(self, name: str) -> float:
        return self._rings[name][(self.looks - 1) % KEPT] if self.looks else 0.0

    def curves(self) -> list[tuple[str, str, list[float]]]:
        """All curves, the oldest value first, with at most `SHOWN_POINTS` points: the largest of each span."""
        return [(name, unit, self._curve(name)) for name, unit in CURVES]

    def _curve(self, name: str) -> list[float]:
        ring = self._rings[name]
        at = self.looks % KEPT
        values = list(ring[:at]) if self.looks < KEPT else [*ring[at:], *ring[:at]]
        width = -(-len(values) // SHOWN_POINTS)
        if width > 1:
            values = [max(values[start : start + width]) for start in range(0, len(values), width)]
        return [float(f"{value:.5g}") for value in values]

    def times_of_the_last_minute(self) -> Mapping[int, Sequence[int]]:
        """Requests by key and by how long they took, as `RequestTimes` has them."""
        now = {key: tuple(times.buckets) for key, times in self._inside().times.by_key().items()}
        then = self._buckets[0] if self._buckets else {}
        return {key: difference(buckets, then.get(key)) for key, buckets in now.items()}

    async def shared(self, name: str, make: Callable[[], Awaitable[T]], seconds: float = SHARED_S) -> T:
        """What `make` returns, or has returned for another page a moment ago."""
        known = self._shared.get(name)
        now_s = time.monotonic()
        if known is not None and (not known[1].done() or now_s - known[0] < seconds):
            shared: T = await asyncio.shield(known[1])
            return shared
        if len(self._shared) >= MOST_SHARED:
            self._shared = {name: each for name, each in self._shared.items() if not each[1].done()}
        future: asyncio.Future[Any] = asyncio.ensure_future(make())
        self._shared[name] = (now_s, future)
        made: T = await asyncio.shield(future)
        return made


def difference(now: Sequence[int] | None, then: Sequence[int] | None) -> Sequence[int]:
    if now is None:
        return ()
    return now if then is None else [new - old for new, old in zip(now, then, strict=True)]


def percentile_ms(buckets: Sequence[int], bounds_ns: Sequence[int]) -> float | None:
    """The bound of the bucket in which 99 % are reached."""
    left = sum(buckets) * 0.99
    if not left:
        return None
    for count, bound in zip(buckets, bounds_ns, strict=False):
        left -= count
        if left <= 0:
            return bound / 1e6
    return bounds_ns[-1] / 1e6
