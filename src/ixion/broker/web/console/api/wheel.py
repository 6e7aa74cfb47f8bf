"""The timing wheel: its levels, and the tasks of one bucket."""

from __future__ import annotations

from typing import Final, TypedDict

from ixion.broker.web.console.inside import Inside
from ixion.broker.web.request import HttpRequest
from ixion.broker.web.response import RefusedError

MOST_TASKS: Final = 200


class Level(TypedDict):
    level: int  # 1 is the finest
    tick_ms: int
    span_ms: int
    counts: list[int]  # tasks in each bucket
    arrived: int  # tasks ever put into this level
    fell_in: int  # tasks that fell from the level above


class Wheel(TypedDict):
    now_ms: int  # the timer's clock
    size: int  # tasks that wait
    next_due_ms: int | None
    added: int
    expired: int
    cancelled: int
    fell: int
    failed: int
    levels: list[Level]


class Task(TypedDict):
    kind: str
    waits_for: str
    due_in_ms: int


class Bucket(TypedDict):
    level: int
    bucket: int
    tick_ms: int
    count: int
    tasks: list[Task]  # the first of them


def snapshot(inside: Inside) -> Wheel:
    now = inside.timer.snapshot()
    return Wheel(
        now_ms=now.now_ms,
        size=now.size,
        next_due_ms=now.next_due_ms,
        added=now.added,
        expired=now.expired,
        cancelled=now.cancelled,
        fell=now.fell,
        failed=now.failed,
        levels=[
            Level(
                level=each.level,
                tick_ms=each.tick_ms,
                span_ms=each.span_ms,
                counts=list(each.counts),
                arrived=each.arrived,
                fell_in=each.fell_in,
            )
            for each in now.levels
        ],
    )


async def wheel(inside: Inside, _request: HttpRequest) -> Wheel:
    return snapshot(inside)


async def bucket(inside: Inside, request: HttpRequest) -> Bucket:
    now = inside.timer.snapshot()
    level, number = whole(request.at["level"]), whole(request.at["bucket"])
    if not 1 <= level <= len(now.levels) or number >= len(now.levels[level - 1].counts):
        raise RefusedError(404, "the wheel has no such bucket")
    tasks = [
        Task(
            kind=task.describe().replace("<locals>.", ""),
            waits_for=task.waits_for()[:500],
            due_in_ms=task.deadline_ms - now.now_ms,
        )
        for task in inside.timer.tasks(level, number, MOST_TASKS)
    ]
    tasks.sort(key=lambda task: task["due_in_ms"])
    found = now.levels[level - 1]
    return Bucket(level=level, bucket=number, tick_ms=found.tick_ms, count=found.counts[number], tasks=tasks)


def whole(text: str) -> int:
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 1 << 31
