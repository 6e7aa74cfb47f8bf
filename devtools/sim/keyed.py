"""What a compacted topic must still have: a model of writes by key, without I/O."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from devtools.history.operation import Outcome

Value = bytes | None  # None: a tombstone
Entry = tuple[int, bytes, Value]  # offset, key, value


@dataclass(slots=True)
class Write:
    key: bytes
    value: Value
    outcome: Outcome = Outcome.INFO  # OK: committed; FAIL: aborted; INFO: not known
    offset: int = -1


@dataclass(slots=True)
class Keyed:
    """Writes by key, in the order in which they were sent: each key has one writer."""

    writes: dict[bytes, list[Write]] = field(default_factory=dict)
    deleted: int = 0  # DeleteRecords was asked for below this offset: records there may be gone, or not

    def add(self, write: Write) -> None:
        self.writes.setdefault(write.key, []).append(write)

    def _last(self, key: bytes) -> tuple[Write | None, list[Write]]:
        """The last committed write, and those after it that may have been committed."""
        later: list[Write] = []
        for write in reversed(self.writes[key]):
            if write.outcome is Outcome.OK:
                return write, later
            if write.outcome is Outcome.INFO:
                later.append(write)
        return None, later

    def wrong_read(self, records: Iterable[Entry], whole: bool) -> list[str]:
        """What is wrong with the records that a reader at read_committed got, in order. `whole`: it began when all was
        written, so that it must not see what was deleted; one that reads along may have seen it before."""
        state: dict[bytes, Value] = {}
        wrong: list[str] = []
        aborted = {each.value for some in self.writes.values() for each in some if each.outcome is Outcome.FAIL}
        places: dict[Value, int] = {}
        last = -1
        for offset, key, value in records:
            state[key] = value
            if offset <= last and whole:
                wrong.append(f"{offset} was read after {last}")
            last = offset
            if value is None:
                continue
            if value in aborted:
                wrong.append(f"{value!r} at {offset} was aborted")
            if places.setdefault(value, offset) != offset:
                wrong.append(f"{value!r} is at {places[value]} and at {offset}")
        for key in self.writes:
            found, (write, later) = state.get(key), self._last(key)
            allowed = {each.value for each in later} | {None if write is None else write.value}
            if write is not None and write.offset < self.deleted and (found is None or not whole):
                continue
            if found not in allowed:
                wrong.append(f"{key!r} is {found!r}, not {_say(allowed)}")
        return wrong

    def wrong_log(self, entries: Iterable[Entry], log_start: int) -> list[str]:
        """What is wrong with the log of one replica: it lacks the last record of a key, or has others than were
        acknowledged at their offsets."""
        found = {offset: (key, value) for offset, key, value in entries}
        places: dict[Value, int] = {}
        for offset, (_, value) in found.items():
            if value is not None:
                places[value] = offset
        wrong: list[str] = []
        for key, writes in self.writes.items():
            for write in writes:
                at = places.get(write.value, write.offset) if write.value is not None else write.offset
                if 0 <= write.offset != at:
                    wrong.append(f"{write.value!r}, acknowledged at {write.offset}, is at {at}")
            last, later = self._last(key)
            if last is None or later or last.offset < log_start:
                continue
            if found.get(last.offset) != (key, last.value):
                wrong.append(f"{key!r} lacks {last.value!r} at {last.offset}: {found.get(last.offset)}")
        return wrong

    def superseded(self, entries: Iterable[Entry]) -> list[int]:
        """Offsets that compaction should have dropped, if it has seen all of these."""
        latest: dict[bytes, int] = {}
        doomed: list[int] = []
        for offset, key, _ in entries:
            if key in latest:
                doomed.append(latest[key])
            latest[key] = offset
        return doomed


def _say(values: Iterable[Value]) -> str:
    return " or ".join(sorted(repr(value) for value in values))
