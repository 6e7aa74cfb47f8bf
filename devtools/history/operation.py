"""One operation of one client, as the history tells it.

A history is a file of lines, each a JSON object:

    {"process": 3, "type": "invoke", "f": "txn", "value": [["send", "t-0", "3.17"], ["send", "t-1", "3.18"]], "time": …}
    {"process": 3, "type": "ok",     "f": "txn", "value": [["send", "t-0", "3.17", 40], ["send", "t-1", "3.18", 9]], …}
    {"process": 7, "type": "ok",     "f": "poll", "value": [["poll", "t-0", [[40, "3.17"], [41, "4.2"]]]], …}

`ok`: it happened. `fail`: it certainly did not. `info`: unknown; so is an operation that was invoked and never
heard of again. Values are unique. A send has its offset if the answer named it. `assign` sets a reader anew: positions
may jump there. A process does one thing at a time; after `info` a client goes on under a new number.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum


class Outcome(Enum):
    OK = "ok"
    FAIL = "fail"
    INFO = "info"


@dataclass(frozen=True, slots=True, kw_only=True)
class Send:
    key: str  # the partition
    value: str
    offset: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Poll:
    key: str
    records: tuple[tuple[int, str], ...]  # offset, value


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    process: int
    outcome: Outcome
    kind: str  # send, txn, poll, assign
    parts: tuple[Send | Poll, ...]

    @property
    def sends(self) -> list[Send]:
        return [part for part in self.parts if isinstance(part, Send)]

    @property
    def polls(self) -> list[Poll]:
        return [part for part in self.parts if isinstance(part, Poll)]


def read_history(lines: Iterable[str]) -> Iterator[Operation]:
    """Operations in the order of their ends; those that never ended come last. A kill may cut a line short."""
    open_ones: dict[int, Operation] = {}
    for line in lines:
        try:
            entry = json.loads(line)
        except json.JSONDecodeError:
            continue
        operation = Operation(
            process=entry["process"],
            outcome=Outcome.INFO if entry["type"] == "invoke" else Outcome(entry["type"]),
            kind=entry["f"],
            parts=tuple(_part(part) for part in entry["value"]),
        )
        if entry["type"] == "invoke":
            open_ones[operation.process] = operation
        else:
            open_ones.pop(operation.process, None)
            yield operation
    yield from open_ones.values()


def _part(part: list[object]) -> Send | Poll:
    kind, key, *rest = part
    if kind == "send":
        value, *offset = rest
        return Send(key=str(key), value=str(value), offset=int(str(offset[0])) if offset else None)
    (records,) = rest
    assert isinstance(records, list)
    return Poll(key=str(key), records=tuple((int(offset), str(value)) for offset, value in records))
