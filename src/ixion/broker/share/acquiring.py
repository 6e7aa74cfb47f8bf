"""Which of the records that were read a member acquires.

The records come as batches of the log. Records that are available are acquired in the order of their offsets, then new
ones as far as there is room. In the usual mode whole batches are taken, so a fetch may return more records than it
asked for, up to the end of the batch; with a strict limit (KIP-1206) the rest of the batch is left to others.

A record that fails again and again is isolated, so that it does not take its neighbours to the delivery limit with it
(limit 5, 100 records that one poison record keeps from being acknowledged):

    delivery   1      2      3      4      5
    records    0-99   0-99   0-99   0-49   0, then 1, then 2 …

From half of the limit on, each delivery takes half as many neighbours; the last one is of one record alone. A group
with a backoff gets the last rule only, because with both it would take very long to isolate a record.
"""

from __future__ import annotations

from typing import NamedTuple

from ixion.broker.share.acknowledgement import Change
from ixion.broker.share.partition import MOST_RUNS, SharePartition
from ixion.broker.share.runs import Run
from ixion.broker.share.states import ACQUIRED, AVAILABLE
from ixion.broker.share.terms import Terms


class Found(NamedTuple):
    """A batch of the log."""

    base: int
    last: int
    aborted: bool = False  # of an aborted transaction, and the group reads committed records only


class Acquired(NamedTuple):
    """Neighbouring records that a member has acquired."""

    first: int
    last: int
    deliveries: int


class Acquiring:
    def __init__(
        self,
        partition: SharePartition,
        member: str,
        now_ms: int,
        terms: Terms,
        *,
        most: int,
        batch_size: int = 0,
        strict: bool = False,
    ) -> None:
        """`batch_size`: the answer is cut at ends of batches into pieces of about so many records; 0: it is not."""
        self._partition = partition
        self._member = partition.number_of(member)
        self._now_ms = now_ms
        self._until_ms = now_ms + terms.lock_ms
        self._terms = terms
        self._most = most
        self._batch_size = batch_size
        self._strict = strict
        self._stopped = False
        self._slice_end = -1  # the last offset of a run of which only a part may be taken now
        self._may_join = False  # whether the next record may continue the last piece of the answer
        self.taken = 0
        self.answer: list[Acquired] = []
        self.changes: list[Change] = []  # archived on the way, to be stored

    def take(self, batches: list[Found], offset: int) -> list[Acquired]:
        """Acquire from batches that were read from `offset` on."""
        partition = self._partition
        offset = max(offset, partition.start)
        for batch in batches:
            if batch.last < offset:
                continue
            if batch.base > offset:
                self.changes += partition.archive(offset, batch.base - 1)
                offset = batch.base
            if batch.aborted:
                self.changes += partition.archive(offset, batch.last)
            else:
                self._take(offset, batch.last)
            offset = batch.last + 1
            if self._stopped or self.taken >= self._most:
                break
            if self.answer and self._batch_size and size_of(self.answer[-1]) >= self._batch_size:
                self._may_join = False
        for piece in joined(self.answer):
            partition.lock(piece.first, piece.last, self._until_ms, self._now_ms)
        return self.answer

    def _take(self, first: int, last: int) -> None:
        partition = self._partition
        known = partition.runs.within(first, last) if first < partition.end else []
        pieces: list[Run] = []
        locked = partition.locked
        for run in known:
            if run.state != AVAILABLE:
                continue
            if locked >= self._terms.max_locks:
                self._stopped = True
                break
            last_taken = self._limited(run)
            if last_taken < run.first:
                break
            pieces.append(Run(run.first, last_taken, ACQUIRED, run.deliveries + 1, self._member, self._until_ms))
            locked += last_taken - run.first + 1
            self._add(pieces[-1])
            if self._stopped:
                break
        partition.runs.put(pieces)
        if last >= partition.end and not self._stopped:
            self._take_new(last)

    def _limited(self, run: Run) -> int:
        """The last record of an available run that may be acquired now; before its first: none."""
        last = run.last
        if self._slice_end >= 0:
            if run.first > self._slice_end:
                self._stopped = True
                return run.first - 1
        elif self._is_throttled(run):
            if self.taken and run.deliveries >= self._terms.delivery_limit - 1:
                self._stopped = True  # it will be delivered alone, in a fetch of its own
                return run.first - 1
            self._slice_end = self._end_of_slice(run)
        if 0 <= self._slice_end <= last:
            last = self._slice_end
            self._stopped = True
        if self._strict and last - run.first + 1 >= self._most - self.taken:
            last = run.first + self._most - self.taken - 1
            self._stopped = True
        return last

    def _is_throttled(self, run: Run) -> bool:
        terms = self._terms
        return run.deliveries >= terms.throttled_from and (
            run.deliveries >= terms.delivery_limit - 1 or terms.backoff.base_ms <= 0
        )

    def _end_of_slice(self, run: Run) -> int:
        terms = self._terms
        if run.deliveries >= terms.delivery_limit - 1:
            return run.first
        runs = self._partition.runs
        whole = runs.at(runs.slot_of(run.first))  # the run may go on in the next batch
        size = whole.last - run.first + 1
        return run.first + max(size >> (run.deliveries - terms.throttled_from + 1), 1) - 1

    def _take_new(self, last: int) -> None:
        partition = self._partition
        terms = self._terms
        first = partition.end
        room = terms.max_locks - partition.held
        if room <= 0 or len(partition.runs) >= MOST_RUNS:
            self._stopped = True
            return
        if self._slice_end >= 0:  # a slice of failing records is delivered without others
            self._stopped = True
            return
        if self._strict and last - first >= min(self._most - self.taken, room):
            last = first + min(self._most - self.taken, room) - 1
            self._stopped = True
        run = Run(first, last, ACQUIRED, 1, self._member, self._until_ms)
        partition.runs.append(run)
        self._add(run)

    def _add(self, run: Run) -> None:
        self.taken += run.last - run.first + 1
        before = self.answer[-1] if self.answer else None
        if (
            before is not None
            and self._may_join
            and before.last + 1 == run.first
            and before.deliveries == run.deliveries
        ):
            self.answer[-1] = before._replace(last=run.last)
        else:
            self.answer.append(Acquired(run.first, run.last, run.deliveries))
        self._may_join = True


def size_of(piece: Acquired) -> int:
    return piece.last - piece.first + 1


def joined(pieces: list[Acquired]) -> list[Acquired]:
    """The pieces without regard to their counts, neighbours as one."""
    kept: list[Acquired] = []
    for piece in pieces:
        if kept and kept[-1].last + 1 == piece.first:
            kept[-1] = kept[-1]._replace(last=piece.last)
        else:
            kept.append(piece)
    return kept
