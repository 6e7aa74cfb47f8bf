"""A share partition: one partition as one share group consumes it. Rules without I/O and without a clock.

    start ............................................................ end ............. end of the log
     |  ACQUIRED  ACKNOWLEDGED  DEFERRED  AVAILABLE  ACQUIRED  PENDING  |  not delivered yet
     everything before start is finished

A member acquires records for a time (the lock) and acknowledges them: then they are finished, or available again, or
deferred. `start` moves over what is finished.

    AVAILABLE --acquire--> ACQUIRED --acknowledge--> PENDING --stored--> ACKNOWLEDGED | ARCHIVED | AVAILABLE | DEFERRED
                           ACQUIRED --lock expired, session ended------> ARCHIVED | AVAILABLE | DEFERRED
    DEFERRED --due--> AVAILABLE              PENDING --not stored--> ACQUIRED
    instead of ARCHIVED, with dead letters: ARCHIVING --its letter is written--> ARCHIVED

Each delivery counts. A record that comes back at the delivery limit is archived instead.

How much may be in flight is *counted*: records acquired, or available again (`held`). Kafka takes the span from start
to end, so one record that a member keeps stops the whole group 2,000 records later. Here, finished and deferred records
beyond it cost only their runs; of these there may be `MOST_RUNS`, then nothing new is delivered until some have gone.

A change that a member waits for is stored before it counts: `acknowledge` returns the changes and sets the records
PENDING, `settle` applies or reverts them. Changes that nobody waits for (expiry, end of a session) count at once and
are stored afterwards. That a record was acquired is not stored: after a change of the leader it is available with the
count that it had.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, TypeVar

from ixion.broker.share.acknowledgement import ACCEPT, GAP, RELEASE, RENEW, Acknowledgement, Change
from ixion.broker.share.runs import Run, Runs
from ixion.broker.share.states import (
    ACKNOWLEDGED,
    ACQUIRED,
    ARCHIVED,
    ARCHIVING,
    AVAILABLE,
    DEFERRED,
    NEVER,
    NOBODY,
    PENDING,
)
from ixion.broker.share.terms import LONGEST_DELAY_MS, Terms
from ixion.broker.share.timetable import Timetable
from ixion.language.model.errors import ErrorCode, KafkaError

MOST_RUNS: Final = 100_000
AT_ONCE: Final = 2_000  # entries of the timetable that one call of `expire` looks at: some milliseconds
Range = TypeVar("Range", Run, Change)
UNKNOWN: Final = -1  # the number of a member that has acquired nothing


class SharePartition:
    def __init__(self, start: int) -> None:
        self.runs = Runs(start)
        self.timetable = Timetable(start)
        self._numbers: dict[str, int] = {}  # of members that have acquired something
        self._members: dict[int, str] = {}
        self._last_number = NOBODY

    @property
    def start(self) -> int:
        return self.runs.start

    @property
    def end(self) -> int:
        return self.runs.end

    @property
    def locked(self) -> int:
        """Records that a member has."""
        tallies = self.runs.tallies
        return tallies[ACQUIRED] + tallies[PENDING]

    @property
    def held(self) -> int:
        """Records in flight: that a member has, or that were delivered and are available again."""
        return self.locked + self.runs.tallies[AVAILABLE]

    @property
    def is_full_of_runs(self) -> bool:
        return len(self.runs) >= MOST_RUNS

    # Loading.

    def load(self, stored: Iterable[Run], log_end: int, now_ms: int) -> None:
        """Take over what was stored: ascending AVAILABLE (with a due time, perhaps), ACKNOWLEDGED, ARCHIVING and
        ARCHIVED runs.

        Offsets between them were acquired and are available. Offsets that the log does not have are left out.
        """
        runs = self.runs
        for run in stored:
            first, last = max(run.first, runs.end), min(run.last, log_end - 1)
            if first > last:
                continue
            if first > runs.end:
                runs.append(Run(runs.end, first - 1, AVAILABLE))
            waits = run.state == AVAILABLE and run.when > now_ms
            state = DEFERRED if waits else run.state
            runs.append(Run(first, last, state, run.deliveries, NOBODY, run.when if waits else NEVER))
        self._advance_start()
        self._anew(now_ms)

    # Acquiring.

    def may_extend(self, terms: Terms) -> bool:
        """Whether records that were never delivered may be acquired."""
        return self.held < terms.max_locks and len(self.runs) < MOST_RUNS

    def next_offset(self, terms: Terms) -> int:
        """Where to read what can be acquired; -1: nothing can be, now."""
        if self.runs.tallies[AVAILABLE] and self.locked < terms.max_locks:
            return self.runs.firsts[self.runs.find(AVAILABLE)]
        return self.runs.end if self.may_extend(terms) else -1

    def number_of(self, member: str) -> int:
        number = self._numbers.get(member)
        if number is None:
            number = self._last_number = self._last_number + 1
            self._numbers[member] = number
            self._members[number] = member
        return number

    def lock(self, first: int, last: int, until_ms: int, now_ms: int) -> None:
        """Note when the lock of a range ends."""
        self._schedule(first, last, until_ms, now_ms)

    # Acknowledging.

    def acknowledge(self, member: str, batches: list[Acknowledgement], now_ms: int, terms: Terms) -> list[Change]:
        """What must be stored before these (checked) acknowledgements count; nothing for renewals.

        KafkaError if one of them cannot be: then all of them are refused. Offsets before the start are skipped.
        """
        number = self._numbers.get(member, UNKNOWN)
        pieces: list[Run] = []
        changes: list[Change] = []
        renewed: list[Run] = []
        for batch in batches:
            if batch.last < self.start:
                continue
            if batch.last >= self.end:
                raise KafkaError(ErrorCode.INVALID_REQUEST, f"offset {batch.last} has not been delivered")
            for run in self.runs.within(batch.first, batch.last):
                if run.state != ACQUIRED or run.member != number:
                    raise KafkaError(
                        ErrorCode.INVALID_RECORD_STATE, f"offsets {run.first} to {run.last} are not acquired by you"
                    )
                for first, last, kind in alike(batch, run):
                    piece = run.part(first, last)
                    if kind == RENEW:
                        if not terms.may_renew:
                            raise KafkaError(ErrorCode.INVALID_RECORD_STATE, "the group does not allow renewals")
                        piece = piece._replace(when=now_ms + terms.lock_ms)
                        renewed.append(piece)
                    else:
                        piece = Run(piece.first, piece.last, PENDING, piece.deliveries, piece.member, piece.when)
                        changes.append(outcome(piece, kind, batch.delay_ms, now_ms, terms))
                    pieces.append(piece)
        self.runs.put(pieces)
        for piece in renewed:
            self._schedule(piece.first, piece.last, piece.when, now_ms)
        return joined(changes)

    def settle(self, changes: list[Change], stored: bool, now_ms: int) -> None:
        """The changes of an acknowledgement were stored, or could not be."""
        pieces: list[Run] = []
        for change in changes:
            for run in self.runs.within(change.first, change.last):
                if run.state != PENDING:
                    continue
                if stored:
                    pieces.append(changed(run, change))
                elif run.member in self._members:
                    pieces.append(run._replace(state=ACQUIRED))
                else:  # its session has ended meanwhile
                    pieces.append(run._replace(state=AVAILABLE, member=NOBODY, when=NEVER))
        self.runs.put(pieces)
        for piece in pieces:
            if piece.state == DEFERRED or piece.state == ACQUIRED:
                self._schedule(piece.first, piece.last, piece.when, now_ms)
        self._advance_start()

    def release(self, member: str, terms: Terms) -> list[Change]:
        """The session of the member has ended: its records are available again, without a delay."""
        number = self._numbers.pop(member, UNKNOWN)
        self._members.pop(number, None)
        runs = self.runs
        pieces: list[Run] = []
        slot = runs.find(ACQUIRED)
        while slot >= 0:
            if runs.members[slot] == number:
                pieces.append(runs.at(slot))
            slot = runs.find(ACQUIRED, slot + 1)
        return self._apply([ended(run, terms) for run in pieces])

    def expire(self, now_ms: int, terms: Terms) -> tuple[list[Change], bool]:
        """Locks that have expired by now, to be stored; and whether anything is available that was not. Deferred
        records that are due are available without being stored."""
        changes: list[Change] = []
        due: list[Run] = []
        again: dict[tuple[int, int], tuple[int, int]] = {}
        for first, last, until_ms in self.timetable.take(now_ms, AT_ONCE):
            if self._waits_on(first, last, until_ms, now_ms):
                continue
            for run in self.runs.within(first, last):
                if run.state not in (ACQUIRED, DEFERRED):
                    continue
                if run.when > now_ms:
                    if run.when < until_ms:
                        known = again.get((first, run.when))
                        again[first, run.when] = (run.first if known is None else known[0], run.last)
                elif run.state == DEFERRED:
                    due.append(run._replace(state=AVAILABLE, when=NEVER))
                else:
                    changes.append(expired(run, now_ms, terms))
        for (_, when), (first, last) in again.items():
            self.timetable.add(first, last, when, now_ms)
        if due:
            self.runs.put(in_order(due))
        applied = self._apply(joined(in_order(changes)))
        for change in applied:
            if change.state == DEFERRED:
                self._schedule(change.first, change.last, change.due_ms, now_ms)
        return applied, bool(due or applied)

    def _waits_on(self, first: int, last: int, until_ms: int, now_ms: int) -> bool:
        """Whether these offsets are one run of which nothing is due yet; it is in a narrower bucket then. The common
        case, for which no object is made."""
        runs = self.runs
        if first < runs.start or last >= runs.end:
            return False
        slot = runs.slot_of(first)
        if slot + 1 < len(runs.states) and runs.firsts[slot + 1] <= last:
            return False
        state, when = runs.states[slot], runs.whens[slot]
        if state != ACQUIRED and state != DEFERRED:
            return True  # it was acknowledged, and has nothing to wait for
        if when <= now_ms:
            return False
        if when < until_ms:
            self.timetable.add(first, last, when, now_ms)
        return True

    # Dead letters.

    def without_letter(self, most: int) -> list[Run]:
        """Records that wait for their dead letter, in order; so many at most."""
        found: list[Run] = []
        runs = self.runs
        slot = runs.find(ARCHIVING)
        while slot >= 0 and most > 0:
            run = runs.at(slot)
            run = run.part(run.first, run.first + most - 1)
            found.append(run)
            most -= run.last - run.first + 1
            slot = runs.find(ARCHIVING, slot + 1)
        return found

    def lettered(self, written: list[Run]) -> list[Change]:
        """Their dead letters are written, or are not wanted any more. To be stored."""
        return self._apply(
            [
                Change(run.first, run.last, ARCHIVED, run.deliveries)
                for each in written
                for run in self.runs.within(each.first, each.last)
                if run.state == ARCHIVING
            ]
        )

    # What the log does.

    def move_start(self, offset: int) -> int:
        """The log begins there now. Returns how many unfinished records are gone with the rest."""
        if offset <= self.start:
            return 0
        unfinished = self.unfinished
        self.runs.drop_below(offset)
        self._advance_start()
        return unfinished - self.unfinished

    @property
    def unfinished(self) -> int:
        return self.end - self.start - self.finished

    @property
    def finished(self) -> int:
        """Records between start and end that are finished."""
        tallies = self.runs.tallies
        return tallies[ACKNOWLEDGED] + tallies[ARCHIVED]

    def archive(self, first: int, last: int) -> list[Change]:
        """There is nothing to deliver in these offsets: compacted away, or aborted. The range may reach beyond the
        end, which moves then."""
        runs = self.runs
        last_known = min(last, runs.end - 1)
        changes = [
            Change(run.first, run.last, ARCHIVED, run.deliveries)
            for run in runs.within(first, last_known)
            if run.state == AVAILABLE
        ]
        self._apply(changes)
        if last >= runs.end:
            changes.append(Change(runs.end, last, ARCHIVED, 0))
            runs.append(Run(runs.end, last, ARCHIVED))
            self._advance_start()
        return changes

    # Storing.

    def stored_start(self, changes: list[Change]) -> tuple[int, int]:
        """Start, and finished records beyond it, as they are once these changes are stored."""
        runs = self.runs
        finishing = [change for change in changes if change.state in (ACKNOWLEDGED, ARCHIVED)]
        ends = {max(change.first, runs.start): change for change in finishing}
        offset = runs.start
        more = 0
        for change in ends.values():
            more += sum(
                [run.last - run.first + 1 for run in runs.within(change.first, change.last) if run.state == PENDING]
            )
        while offset < runs.end:
            run = runs.at(runs.slot_of(offset))
            if run.state in (ACKNOWLEDGED, ARCHIVED):
                offset = run.last + 1
                continue
            finished = ends.get(offset)
            if run.state != PENDING or finished is None:
                break
            offset = finished.last + 1
        return offset, self.finished + more - (offset - runs.start)

    # Inside.

    def _apply(self, changes: list[Change]) -> list[Change]:
        """Apply changes that count at once."""
        if changes:
            self.runs.put([changed_to(change) for change in changes])
            self._advance_start()
        return changes

    def _advance_start(self) -> None:
        runs = self.runs
        slot = 0
        states = runs.states
        while slot < len(states) and (states[slot] == ACKNOWLEDGED or states[slot] == ARCHIVED):
            slot += 1
        if slot:
            runs.drop_below(runs.firsts[slot] if slot < len(states) else runs.end)

    def _schedule(self, first: int, last: int, when: int, now_ms: int) -> None:
        if self.timetable.is_stale(len(self.runs)) or not self.timetable.holds(last):
            self._anew(now_ms)  # which includes this range
        else:
            self.timetable.add(first, last, when, now_ms)

    def _anew(self, now_ms: int) -> None:
        self.timetable = Timetable(self.start)
        for run in self.runs.all():
            if run.state == ACQUIRED or run.state == DEFERRED:
                self.timetable.add(run.first, run.last, run.when, now_ms)


def alike(batch: Acknowledgement, run: Run) -> list[tuple[int, int, int]]:
    """The run in pieces with one type each: (first, last, type)."""
    if len(batch.types) == 1:
        return [(run.first, run.last, batch.types[0])]
    pieces: list[tuple[int, int, int]] = []
    first = run.first
    kind = batch.type_of(first)
    for offset in range(first + 1, run.last + 1):
        this = batch.type_of(offset)
        if this != kind:
            pieces.append((first, offset - 1, kind))
            first, kind = offset, this
    pieces.append((first, run.last, kind))
    return pieces


def outcome(run: Run, kind: int, delay_ms: int, now_ms: int, terms: Terms) -> Change:
    """What becomes of acquired records with an acknowledgement of this type."""
    if kind == ACCEPT:
        return Change(run.first, run.last, ACKNOWLEDGED, run.deliveries)
    if kind == GAP:
        return Change(run.first, run.last, ARCHIVED, run.deliveries)
    if kind != RELEASE or run.deliveries >= terms.delivery_limit:
        return Change(run.first, run.last, terms.hopeless, run.deliveries)
    delay_ms = min(delay_ms, LONGEST_DELAY_MS) if delay_ms > 0 else terms.backoff.delay_ms(run.deliveries, run.first)
    return back(run, delay_ms, now_ms)


def expired(run: Run, now_ms: int, terms: Terms) -> Change:
    if run.deliveries >= terms.delivery_limit:
        return Change(run.first, run.last, terms.hopeless, run.deliveries)
    backoff = terms.backoff
    return back(run, backoff.delay_ms(run.deliveries, run.first) if backoff.on_timeout else 0, now_ms)


def ended(run: Run, terms: Terms) -> Change:
    state = terms.hopeless if run.deliveries >= terms.delivery_limit else AVAILABLE
    return Change(run.first, run.last, state, run.deliveries)


def back(run: Run, delay_ms: int, now_ms: int) -> Change:
    if delay_ms > 0:
        return Change(run.first, run.last, DEFERRED, run.deliveries, now_ms + delay_ms)
    return Change(run.first, run.last, AVAILABLE, run.deliveries)


def changed(run: Run, change: Change) -> Run:
    return Run(run.first, run.last, change.state, change.deliveries, NOBODY, change.due_ms)


def changed_to(change: Change) -> Run:
    return Run(change.first, change.last, change.state, change.deliveries, NOBODY, change.due_ms)


def in_order(ranges: list[Range]) -> list[Range]:
    """Ascending and disjoint: two entries of a timetable may point to the same records."""
    kept: list[Range] = []
    for each in sorted(ranges):
        if kept and each.first <= kept[-1].last:
            if each.last <= kept[-1].last:
                continue
            each = each._replace(first=kept[-1].last + 1)
        kept.append(each)
    return kept


def joined(changes: list[Change]) -> list[Change]:
    """The changes, alike neighbours as one."""
    kept: list[Change] = []
    for change in changes:
        last = kept[-1] if kept else None
        if last is not None and last.last + 1 == change.first and last[2:] == change[2:]:
            kept[-1] = last._replace(last=change.last)
        else:
            kept.append(change)
    return kept
