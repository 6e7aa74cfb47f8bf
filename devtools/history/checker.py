"""Which promises does a history break?

The anomalies are those that Jepsen looks for in Kafka-like systems, under its names:

| anomaly | what was seen |
|---|---|
| inconsistent-offsets | one offset of a partition with two values |
| duplicate | one value at two offsets |
| lost-write | a write that happened, below one that was read, was never read |
| unseen | a write that happened was not read by the final reads, which read all |
| aborted-read | a value of a transaction or send that failed was read |
| torn-transaction | some values of a transaction were read, others were not, by readers that read all |
| precommitted-read | a transaction polls what it sends itself |
| poll-skip, nonmonotonic-poll | between two polls of one reader records were left out, or came again |
| int-poll-skip, int-nonmonotonic-poll | the same within one operation |
| nonmonotonic-send, int-nonmonotonic-send | what one process, or one operation, sent is stored in another order |
| g1c | transactions read from each other in a circle |

Interleaved writes of transactions are no anomaly. A write whose fate is unknown counts as done once any of it was read.
"Left out" counts only records that some reader saw: offsets of markers and of aborted records are no gaps.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Iterable, Iterator
from dataclasses import dataclass

from devtools.history.cycles import cycles
from devtools.history.operation import Operation, Outcome, Poll


@dataclass(frozen=True, slots=True)
class Anomaly:
    kind: str
    detail: str


class History:
    """What every pass needs to know, gathered once."""

    def __init__(self, operations: Iterable[Operation], repeatable: Container[str] = ()) -> None:
        self.operations = list(operations)
        self.repeatable = repeatable  # values that may be there twice: their producer is not idempotent, and retries
        self.values: dict[tuple[str, int], set[str]] = defaultdict(set)  # by partition and offset
        self.offsets: dict[tuple[str, str], set[int]] = defaultdict(set)  # by partition and value
        self.writers: dict[tuple[str, str], Operation] = {}
        self.readers: dict[tuple[str, str], list[Operation]] = defaultdict(list)
        for operation in self.operations:
            for send in operation.sends:
                self.writers[send.key, send.value] = operation
                if send.offset is not None and operation.outcome is Outcome.OK:
                    self._saw(send.key, send.offset, send.value)
            for poll in operation.polls:
                for offset, value in poll.records:
                    self._saw(poll.key, offset, value)
                    self.readers[poll.key, value].append(operation)
        seen: dict[str, set[int]] = defaultdict(set)
        for (key, value), found in self.offsets.items():
            if (key, value) in self.readers:
                seen[key] |= found
        # The place of each offset among those that were read.
        self.place = {key: {offset: place for place, offset in enumerate(sorted(all_))} for key, all_ in seen.items()}

    def _saw(self, key: str, offset: int, value: str) -> None:
        self.values[key, offset].add(value)
        self.offsets[key, value].add(offset)

    def happened(self, operation: Operation) -> bool:
        if operation.outcome is Outcome.OK:
            return True
        read = any((send.key, send.value) in self.readers for send in operation.sends)
        return operation.outcome is Outcome.INFO and read


def check(operations: Iterable[Operation], repeatable: Container[str] = ()) -> list[Anomaly]:
    """`repeatable`: values of producers without idempotence, which are no duplicates."""
    history = History(operations, repeatable)
    passes = (_offsets, _writes, _torn, _polls, _sends, _circles)
    return [anomaly for each in passes for anomaly in each(history)]


def _offsets(history: History) -> Iterator[Anomaly]:
    for (key, offset), values in history.values.items():
        if len(values) > 1:
            yield Anomaly("inconsistent-offsets", f"{key} offset {offset}: {sorted(values)}")
    for (key, value), offsets in history.offsets.items():
        if len(offsets) > 1 and value not in history.repeatable:
            yield Anomaly("duplicate", f"{key} {value}: offsets {sorted(offsets)}")


def _writes(history: History) -> Iterator[Anomaly]:
    for (key, value), operation in history.writers.items():
        readers = history.readers.get((key, value), [])
        if readers:
            if operation.outcome is Outcome.FAIL:
                yield Anomaly("aborted-read", f"{key} {value}, read by process {readers[0].process}")
            if operation in readers:
                yield Anomaly("precommitted-read", f"{key} {value} of process {operation.process}")
        elif operation.outcome is Outcome.OK:
            offset = min(history.offsets.get((key, value), {-1}))
            below = 0 <= offset < max(history.place.get(key, {-1: 0}))
            yield Anomaly("lost-write" if below else "unseen", f"{key} {value}, acknowledged at offset {offset}")


def _torn(history: History) -> Iterator[Anomaly]:
    for operation in history.operations:
        if operation.kind != "txn" or operation.outcome is Outcome.FAIL or not history.happened(operation):
            continue
        missing = [send for send in operation.sends if (send.key, send.value) not in history.readers]
        if missing and len(missing) < len(operation.sends):
            lost = ", ".join(f"{send.key} {send.value}" for send in missing)
            yield Anomaly("torn-transaction", f"of process {operation.process}; not there: {lost}")


def _polls(history: History) -> Iterator[Anomaly]:
    last: dict[tuple[int, str], int] = {}  # place of the last record, by process and partition
    for operation in history.operations:
        if operation.kind == "assign":
            last = {where: place for where, place in last.items() if where[0] != operation.process}
            continue
        if operation.outcome is Outcome.FAIL:
            continue  # the reader went back to where it was
        within: set[str] = set()
        for poll in operation.polls:
            yield from _follow(history, operation.process, poll, last, within)


def _follow(
    history: History, process: int, poll: Poll, last: dict[tuple[int, str], int], within: set[str]
) -> Iterator[Anomaly]:
    for offset, value in poll.records:
        place = history.place[poll.key][offset]
        before = last.get((process, poll.key))
        prefix = "int-" if poll.key in within else ""
        if before is not None and place > before + 1:
            yield Anomaly(
                f"{prefix}poll-skip", f"process {process} left out {place - before - 1} before {poll.key} {value}"
            )
        elif before is not None and place <= before:
            yield Anomaly(f"{prefix}nonmonotonic-poll", f"process {process} went back to {poll.key} {value}")
        last[process, poll.key] = place
        within.add(poll.key)


def _sends(history: History) -> Iterator[Anomaly]:
    last: dict[tuple[int, str], int] = {}
    for operation in history.operations:
        if not history.happened(operation):
            continue
        within: set[str] = set()
        for send in operation.sends:
            offsets = history.offsets.get((send.key, send.value))
            if not offsets:
                continue
            offset = min(offsets)
            before = last.get((operation.process, send.key))
            if before is not None and offset <= before:
                prefix = "int-" if send.key in within else ""
                detail = f"process {operation.process}: {send.key} {send.value} at {offset}, after {before}"
                yield Anomaly(f"{prefix}nonmonotonic-send", detail)
            last[operation.process, send.key] = offset
            within.add(send.key)


def _circles(history: History) -> Iterator[Anomaly]:
    number = {id(operation): place for place, operation in enumerate(history.operations)}
    edges: dict[int, set[int]] = defaultdict(set)
    for where, readers in history.readers.items():
        writer = history.writers.get(where)
        for reader in readers:
            if writer is not None and reader is not writer and history.happened(reader):
                edges[number[id(writer)]].add(number[id(reader)])
    for circle in cycles(edges):
        processes = [history.operations[place].process for place in circle]
        yield Anomaly("g1c", f"operations of processes {processes} read from each other")
