"""The delayed records of one partition, the soonest first, and how to cancel one.

To cancel is to produce a record that says so (docs/delayed.md).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypedDict, cast

from ixion.broker.web.console.api.due import coming
from ixion.broker.web.console.api.figures import in_short_turns
from ixion.broker.web.console.api.record_rows import Text, text_of
from ixion.broker.web.console.api.records import on_thread
from ixion.broker.web.console.api.sending import Outgoing, Sent, deliver, in_utf8
from ixion.broker.web.console.api.topics import known
from ixion.broker.web.console.bodies import read_body
from ixion.broker.web.console.inside import Inside
from ixion.broker.web.request import HttpRequest
from ixion.broker.web.response import RefusedError
from ixion.config.topic import DELIVERY_DELAY_MODE
from ixion.language.records.schedule_headers import CANCEL

if TYPE_CHECKING:
    from ixion.broker.schedules.state import State

SHOWN: Final = 100
MOST_ID_BYTES: Final = 255
TEXT_BYTES: Final = 300


class WaitingRecord(TypedDict):
    offset: int
    due_ms: int
    id: str
    key: Text
    value: Text


class Waiting(TypedDict):
    topic: str
    partition: int
    waiting: int
    held: int  # in open transactions
    complete: bool  # False: there are more, which are due later
    records: list[WaitingRecord]


class Place(TypedDict):
    partition: int


class ToCancel(Place, total=False):
    offset: int
    id: str


async def waiting(inside: Inside, request: HttpRequest) -> Waiting:
    topic, number = known(inside, request), request.at["partition"]
    found = int(number) if number.isascii() and number.isdigit() and len(number) < 9 else -1
    leader = next((each.leader for each in topic.partitions if each.number == found), None)
    if leader is None:
        raise RefusedError(404, f"{topic.name} has no partition {number[:9]}")
    if leader != inside.node_id:
        raise RefusedError(404, f"broker {leader} leads {topic.name}-{found}: its page shows these records")
    state = state_of(inside, topic.name, found)
    if state is None:
        return Waiting(topic=topic.name, partition=found, waiting=0, held=0, complete=True, records=[])
    due = await in_short_turns(coming([(topic.name, found, state.pending)], SHOWN))
    shown = dict(sorted((each.offset, each.due_ms) for each in due))
    notes = await on_thread(inside, lambda: state.journal.find_all(list(shown)), f"{topic.name}-{found}")
    rows = [
        WaitingRecord(
            offset=note.offset,
            due_ms=shown[note.offset],
            id=note.schedule_id.decode("utf-8", "backslashreplace"),
            key=text_of(note.record.key, TEXT_BYTES),
            value=text_of(note.record.value, TEXT_BYTES),
        )
        for note in notes
        if note.offset in shown
    ]
    rows.sort(key=lambda row: (row["due_ms"], row["offset"]))
    return Waiting(
        topic=topic.name,
        partition=found,
        waiting=state.count,
        held=state.held,
        complete=len(due) >= state.pending.count,
        records=rows,
    )


def state_of(inside: Inside, topic: str, number: int) -> State | None:
    schedule = inside.schedules.get((topic, number))
    return None if schedule is None else schedule.state


async def cancel(inside: Inside, request: HttpRequest) -> Sent:
    """The broker takes the cancel; a record that is delivered before, or does not wait, is not affected."""
    body = cast(ToCancel, read_body(request.body, ToCancel))
    topic = known(inside, request)
    offset, name = body.get("offset"), body.get("id")
    if (offset is None) == (name is None):
        raise RefusedError(400, "give the offset of the record, or its id")
    if name is not None and (not 0 < len(in_utf8(name, "the id")) <= MOST_ID_BYTES or name[0] in "@*"):
        raise RefusedError(400, f"no record can have the schedule id {name[:100]!r}")
    if offset is not None and offset < 0:
        raise RefusedError(400, "an offset is not below zero")
    mode = (inside.image.topic_config(topic.name) or {}).get(DELIVERY_DELAY_MODE.name)
    if mode != "record":  # it would be delivered like any other
        raise RefusedError(
            409, f"{topic.name} has {DELIVERY_DELAY_MODE.name}={mode or 'off'}: nothing can be cancelled"
        )
    state = state_of(inside, topic.name, body["partition"])
    if state is None or not state.count:
        raise RefusedError(404, f"no delayed records of {topic.name}-{body['partition']} wait on this broker")
    wanted = f"@{offset}" if offset is not None else name or ""
    record = Outgoing(b"ixion-schedule", b"", [(CANCEL.decode(), wanted.encode())], body["partition"], None)
    return await deliver(inside, topic, [record])
