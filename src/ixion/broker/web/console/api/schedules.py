"""Delayed records: how many are due when, in which partitions they wait, and which ones come next."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, TypedDict

from ixion.broker.acl.numbers import DESCRIBE, READ, TOPIC
from ixion.broker.schedules.note import Kind, Note
from ixion.broker.web.console.api.due import Counts, coming, counts
from ixion.broker.web.console.api.figures import Page, in_short_turns, page_of
from ixion.broker.web.console.api.record_rows import Text, text_of
from ixion.broker.web.console.api.records import on_thread
from ixion.broker.web.console.inside import Inside
from ixion.broker.web.console.rights import seen
from ixion.broker.web.request import HttpRequest

if TYPE_CHECKING:
    from ixion.broker.schedules.schedule import Schedule
    from ixion.broker.schedules.state import State

MOST_DUE: Final = 200
MOST_DAYS: Final = 60
SHOWN_BYTES: Final = 300  # of a key or value


class ScheduleRow(TypedDict):
    topic: str
    partition: int
    waiting: int
    bytes: int
    near: int  # in memory, because they are due soon
    next_ms: int | None  # until something is due, or is looked at again
    overdue_ms: int


class Due(TypedDict):
    label: str
    count: int


class Schedules(TypedDict):
    waiting: int
    accepted: int
    delivered: int
    cancelled: int
    failures: int
    seconds: list[Due]  # due in the next minute
    hours: list[Due]  # in the next day
    days: list[Due]  # later
    page: Page
    schedules: list[ScheduleRow]


class DueRow(TypedDict):
    due_ms: int
    in_ms: int  # below 0: overdue
    topic: str
    partition: int
    offset: int  # of its hole; it is cancelled by this
    id: str
    recurs: bool
    goes_to: str  # the topic that it is delivered to; empty: its own
    key: Text
    value: Text
    size: int


class ComingDue(TypedDict):
    query: str
    waiting: int
    due: list[DueRow]  # the first one first


async def states_of(inside: Inside, request: HttpRequest, operation: int) -> list[tuple[Schedule, State]]:
    """Those of topics on which the caller has the right to the operation."""
    wanted = request.query.get("q", "")[:100].lower()
    found = [
        (each, each.state)
        for each in inside.schedules
        if each.state is not None and wanted in f"{each.partition.topic}-{each.partition.number}".lower()
    ]
    return await in_short_turns(seen(inside.caller, operation, TOPIC, found, lambda each: each[0].partition.topic))


async def schedules(inside: Inside, request: HttpRequest) -> Schedules:
    now_ms = inside.clock_ms()
    states = await states_of(inside, request, DESCRIBE)
    states.sort(key=lambda each: -each[1].count)
    page = page_of(request, len(states))
    name = f"{inside.caller.scope}due {page['query'].lower()!r}"
    pendings = [state.pending for _, state in states]
    found = await inside.history.shared(name, lambda: in_short_turns(counts(pendings, now_ms)))
    figures = inside.schedules.figures
    return Schedules(
        waiting=sum(state.count for _, state in states),
        accepted=figures.accepted,
        delivered=figures.delivered,
        cancelled=figures.cancelled,
        failures=figures.failures,
        seconds=[Due(label=f"in {second} s", count=count) for second, count in enumerate(found.seconds)],
        hours=[Due(label=f"in {hour} h", count=count) for hour, count in enumerate(found.hours)],
        days=[Due(label=f"in {day} days", count=found.days.get(day, 0)) for day in days_of(found)],
        page=page,
        schedules=[
            ScheduleRow(
                topic=each.partition.topic,
                partition=each.partition.number,
                waiting=state.count,
                bytes=state.size,
                near=state.pending.near,
                next_ms=max(state.pending.wake_ms() - now_ms, 0) if state.count else None,
                overdue_ms=state.pending.overdue_ms(now_ms),
            )
            for each, state in states[page["start"] : page["start"] + page["limit"]]
        ],
    )


def days_of(found: Counts) -> range:
    """From tomorrow to the last day that has something, at most `MOST_DAYS`."""
    return range(1, min(max(found.days, default=0), MOST_DAYS) + 1)


async def due(inside: Inside, request: HttpRequest) -> ComingDue:
    """The records that are due next, read from their notes on a worker thread."""
    most = request.number("limit", 50, 1, MOST_DUE)
    states = await states_of(inside, request, READ)
    pendings = [(each.partition.topic, each.partition.number, state.pending) for each, state in states]
    name = f"{inside.caller.scope}coming {request.query.get('q', '')[:100].lower()!r} {most}"
    rows = await inside.history.shared(name, lambda: in_short_turns(coming(pendings, most)))
    offsets: dict[tuple[str, int], list[int]] = {}
    for row in rows:
        offsets.setdefault((row.topic, row.partition), []).append(row.offset)
    notes: dict[tuple[str, int, int], Note] = {}
    for schedule, _ in states:
        place = (schedule.partition.topic, schedule.partition.number)
        if place in offsets:
            wanted = sorted(offsets[place])
            found = await on_thread(inside, partial(schedule.journal.find_all, wanted), f"what waits in {place[0]}")
            notes |= {(*place, each.offset): each for each in found}
    now_ms = inside.clock_ms()
    return ComingDue(
        query=request.query.get("q", "")[:100],
        waiting=sum(state.count for _, state in states),
        due=[
            due_row(inside, row.due_ms, row.due_ms - now_ms, row.topic, row.partition, note)
            for row in rows
            if (note := notes.get((row.topic, row.partition, row.offset))) is not None  # else it has just left
        ],
    )


async def view(inside: Inside, request: HttpRequest) -> tuple[Schedules, ComingDue]:
    """Both, for the page."""
    return await schedules(inside, request), await due(inside, request)


def due_row(inside: Inside, due_ms: int, in_ms: int, topic: str, partition: int, note: Note) -> DueRow:
    return DueRow(
        due_ms=due_ms,
        in_ms=in_ms,
        topic=topic,
        partition=partition,
        offset=note.offset,
        id=note.schedule_id[:SHOWN_BYTES].decode(errors="backslashreplace"),
        recurs=note.kind == Kind.RECURS,
        goes_to=note.target if note.target and inside.caller.describes(note.target) else "",
        key=text_of(note.record.key, SHOWN_BYTES),
        value=text_of(note.record.value, SHOWN_BYTES),
        size=note.size,
    )
