"""Small functions that several views share."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, Final, TypedDict, TypeVar

from ixion.broker.web.request import HttpRequest
from ixion.timer.turns import Steps, run_turn

T = TypeVar("T")

TURN_NS: Final = 2_000_000
ROWS: Final = 100
MOST_ROWS: Final = 1000


class Page(TypedDict):
    """Which part of a list this is."""

    total: int  # rows that match
    start: int
    limit: int
    query: str


async def in_short_turns(steps: Steps[T]) -> T:
    """As `in_turns`, in shorter ones: a page is less urgent than any request of a client."""
    result = run_turn(steps, TURN_NS)
    while result is None:
        await asyncio.sleep(0)
        result = run_turn(steps, TURN_NS)
    await asyncio.sleep(0)  # what is made of it is another turn
    return result[0]


def as_json(found: Mapping[str, Any]) -> Steps[bytes]:
    """An answer, one row of its lists at a time: `json` holds the event loop for as long as it writes."""
    parts: list[bytes] = []
    for name, value in found.items():
        if isinstance(value, list):
            rows: list[bytes] = []
            for each in value:
                rows.append(written(each))
                yield
            parts.append(b"%s:[%s]" % (written(name), b",".join(rows)))
        else:
            parts.append(b"%s:%s" % (written(name), written(value)))
        yield
    return b"{%s}" % b",".join(parts)


def written(value: Any) -> bytes:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


def page_of(request: HttpRequest, total: int) -> Page:
    limit = request.number("limit", ROWS, 1, MOST_ROWS)
    start = min(request.number("start", 0, 0, 1 << 31), max(total - 1, 0))
    return Page(total=total, start=start, limit=limit, query=request.query.get("q", "")[:100])


def part(rows: Sequence[str], page: Page) -> Sequence[str]:
    return rows[page["start"] : page["start"] + page["limit"]]


def matching(names: Iterable[str], request: HttpRequest) -> list[str]:
    """Names that have the text of `q`, in their order."""
    wanted = request.query.get("q", "")[:100].lower()
    return sorted(name for name in names if wanted in name.lower())


def named(key: Hashable) -> str:
    """The key of a purgatory as people write it: a partition is orders-3."""
    if isinstance(key, tuple):
        return "-".join(str(each) for each in key)
    return str(key)


def percentile(buckets: Sequence[int], bounds: Sequence[int], share: float) -> float | None:
    """In the unit of the bounds: the middle of the bucket in which the share is reached; None without samples."""
    total = sum(buckets)
    if not total:
        return None
    left = total * share
    below = 0.0
    for count, bound in zip(buckets, bounds, strict=False):
        left -= count
        if left <= 0:
            return (below + bound) / 2
        below = bound
    return float(bounds[-1])
