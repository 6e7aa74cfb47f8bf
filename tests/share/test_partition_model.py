"""Random lives of a share partition beside a dictionary of offsets, and broken partitions that must be noticed."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from ixion.broker.share import acquiring as acquiring_module
from ixion.broker.share import partition as partition_module
from ixion.broker.share.acknowledgement import Acknowledgement, Change
from ixion.broker.share.acquiring import Acquiring, Found
from ixion.broker.share.partition import SharePartition
from ixion.broker.share.runs import Run, Runs
from ixion.broker.share.states import ACKNOWLEDGED, ACQUIRED, ARCHIVED, AVAILABLE, DEFERRED
from ixion.broker.share.terms import Backoff, Terms
from ixion.broker.share.timetable import Timetable
from ixion.language.model.errors import KafkaError
from tests.share.model import Model, Offset

MEMBERS = ("a", "b", "c")
STEPS = 250


class Life:
    """A partition and its model, with a log of batches and a store, under random events."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        drawn = self.random
        backoff = Backoff(base_ms=700, max_ms=5000, multiplier=2.0, on_timeout=drawn.random() < 0.5)
        self.terms = Terms(
            lock_ms=drawn.choice((1_000, 30_000)),
            delivery_limit=drawn.choice((2, 3, 5)),
            max_locks=drawn.choice((20, 200)),
            backoff=backoff if drawn.random() < 0.4 else Backoff(),
        )
        self.now_ms = 1_000_000
        self.partition = SharePartition(0)
        self.model = Model(self.terms)
        self.batches: list[Found] = []
        self.log_end = 0
        self.log_start = 0
        self.open: list[tuple[list[Change], list[int]]] = []
        self.members: dict[str, str] = {}  # the present life of each member
        self.lives = 0
        self.gone: set[str] = set()
        self.stored: dict[int, tuple[int, int, int]] = {}  # as a later leader would read it
        self.stored_start = 0

    def run(self) -> None:
        for _ in range(STEPS):
            self.random.choice(
                (
                    *(self.append, self.acquire, self.acquire, self.acquire, self.acknowledge, self.acknowledge),
                    *(self.settle, self.settle, self.pass_time, self.leave, self.retain, self.fail_over),
                )
            )()
            self.model.compare(self.partition)
        self.finish()

    def append(self) -> None:
        for _ in range(self.random.randrange(1, 5)):
            size = self.random.choice((1, 1, 3, 10))
            hole = self.random.choice((0, 0, 0, 2))  # compacted away
            base = self.log_end + hole
            self.batches.append(Found(base, base + size - 1, self.random.random() < 0.1))
            self.log_end = base + size

    def member(self) -> str:
        name = self.random.choice(MEMBERS)
        if name not in self.members:
            self.lives += 1
            self.members[name] = f"{name}{self.lives}"
        return self.members[name]

    def acquire(self, most: int = 0) -> int:
        offset = self.partition.next_offset(self.terms)
        if offset < 0 or offset >= self.log_end:
            return 0
        found = [batch for batch in self.batches if batch.last >= offset][: self.random.randrange(1, 6)]
        member = self.member()
        strict = self.random.random() < 0.3
        wanted = most or self.random.randrange(1, 30)
        held = self.partition.held
        acquiring = Acquiring(
            self.partition,
            member,
            self.now_ms,
            self.terms,
            most=wanted,
            batch_size=self.random.choice((0, 4)),
            strict=strict,
        )
        answer = acquiring.take(found, offset)
        events = [(each.first, each) for each in answer] + [(each.first, each) for each in acquiring.changes]
        for _, event in sorted(events, key=lambda pair: pair[0]):
            if isinstance(event, Change):
                assert not any(b.base <= event.last and event.first <= b.last and not b.aborted for b in found)
                self.model.archived(event.first, event.last)
            else:
                for at in range(event.first, event.last + 1):
                    assert any(batch.base <= at <= batch.last and not batch.aborted for batch in found)
                    self.model.acquired(at, event.deliveries, member, self.now_ms + self.terms.lock_ms)
        self.store(acquiring.changes)
        assert not strict or acquiring.taken <= wanted
        assert self.partition.held <= max(held, self.terms.max_locks + 9)
        alone = [each for each in answer if each.deliveries >= self.terms.delivery_limit > 2]
        assert not alone or acquiring.taken == 1, "a last delivery is of one record"
        return acquiring.taken

    def acknowledge(self) -> None:
        member = self.member()
        mine = [at for at, each in self.model.offsets.items() if each.state == ACQUIRED and each.member == member]
        if self.random.random() < 0.1:  # anything
            first = self.random.randrange(max(self.model.start - 5, 0), self.model.end + 3)
            batches = [Acknowledgement(first, first + self.random.randrange(5), (1,))]
        elif not mine:
            return
        else:
            batches = self.batches_of(sorted(self.random.sample(mine, self.random.randrange(1, len(mine) + 1))))
        possible = self.model.may_acknowledge(member, batches)
        try:
            changes = self.partition.acknowledge(member, batches, self.now_ms, self.terms)
        except KafkaError:
            assert not possible
            return
        assert possible
        waiting = self.model.acknowledge(batches, self.now_ms)
        assert sum(each.last - each.first + 1 for each in changes) == len(waiting)
        if waiting:
            self.open.append((changes, waiting))

    def batches_of(self, offsets: list[int]) -> list[Acknowledgement]:
        batches: list[Acknowledgement] = []
        delay = self.random.choice((0, 0, 0, 500, 100_000))
        while offsets:
            size = 1
            while size < len(offsets) and offsets[size] == offsets[0] + size:
                size += 1
            size = self.random.randrange(1, size + 1)
            one = self.random.random() < 0.5
            types = tuple(self.random.choice((0, 1, 1, 2, 2, 2, 3, 4)) for _ in range(1 if one else size))
            batches.append(Acknowledgement(offsets[0], offsets[size - 1], types, delay))
            offsets = offsets[size:]
        return batches

    def settle(self) -> None:
        if not self.open:
            return
        changes, waiting = self.open.pop(self.random.randrange(len(self.open)))
        stored = self.random.random() < 0.8
        if stored:
            start, complete = self.partition.stored_start(changes)
        self.partition.settle(changes, stored, self.now_ms)
        self.model.settle(waiting, stored, self.gone)
        if stored:
            if not self.open:
                assert start == self.model.start
            assert self.model.start >= start
            finished = self.model.count(ACKNOWLEDGED, ARCHIVED) + self.model.start - start
            assert complete == finished
            self.stored_start = start
            self.store(changes)

    def store(self, changes: list[Change]) -> None:
        for change in changes:
            state = AVAILABLE if change.state == DEFERRED else change.state
            for offset in range(change.first, change.last + 1):
                self.stored[offset] = (state, change.deliveries, change.due_ms)

    def pass_time(self) -> None:
        self.now_ms += self.random.choice((1, 30, 500, 1_000, 20_000, 40_000))
        self.expire()

    def expire(self) -> None:
        while 0 <= self.partition.timetable.next_ms <= self.now_ms:
            changes, _ = self.partition.expire(self.now_ms, self.terms)
            self.store(changes)
        self.model.expire(self.now_ms)

    def leave(self) -> None:
        name = self.random.choice(MEMBERS)
        member = self.members.pop(name, None)
        if member is not None:
            self.store(self.partition.release(member, self.terms))
            self.model.release(member)
            self.gone.add(member)

    def retain(self) -> None:
        if self.random.random() < 0.2:
            self.log_start = min(self.log_end, self.log_start + self.random.randrange(20))
            self.partition.move_start(self.log_start)
            self.model.move_start(self.log_start)

    def fail_over(self) -> None:
        """Another leader takes over: it knows what was stored, and nothing else."""
        if self.random.random() > 0.1:
            return
        ends = [at for at in self.stored if at >= self.stored_start]
        start = max(self.stored_start, self.log_start)
        runs = [Run(at, at, *self.stored[at][:2], 0, self.stored[at][2]) for at in sorted(ends) if at >= start]
        before = self.model.accepted
        self.partition = SharePartition(start)
        self.partition.load(runs, self.log_end, self.now_ms)
        self.model = Model(self.terms, start, max([start, *(run.last + 1 for run in runs)]), accepted=before)
        for offset in range(start, self.model.end):
            state, count, due = self.stored.get(offset, (AVAILABLE, 0, 0))
            deferred = state == AVAILABLE and due > self.now_ms
            self.model.offsets[offset] = Offset(DEFERRED if deferred else state, count, "", due if deferred else 0)
        self.model.settle_start()
        self.open = []
        self.gone |= set(self.members.values())
        self.members = {}

    def finish(self) -> None:
        """Everything is delivered and accepted in the end: no record is lost."""
        while self.open:
            changes, waiting = self.open.pop()
            self.partition.settle(changes, False, self.now_ms)
            self.model.settle(waiting, False, self.gone)
        for _ in range(3_000):
            if self.model.start == self.log_end:
                break
            self.acquire(1000)
            self.model.compare(self.partition)
            for name, member in self.members.items():
                mine = [
                    at for at, each in self.model.offsets.items() if each.member == member and each.state == ACQUIRED
                ]
                batches = [Acknowledgement(at, at, (1,)) for at in mine]
                changes = self.partition.acknowledge(member, batches, self.now_ms, self.terms)
                waiting = self.model.acknowledge(batches, self.now_ms)
                self.partition.settle(changes, True, self.now_ms)
                self.model.settle(waiting, True, self.gone)
                assert name in MEMBERS
            self.now_ms += 30_001
            self.expire()
        else:
            raise AssertionError(f"stuck at {self.model.start} of {self.log_end}")


@pytest.mark.parametrize("seed", range(60))
def test_random_lives(seed: int) -> None:
    Life(seed).run()


def forgets_deferred(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Timetable, "add", lambda *_: None)


def ignores_members(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(SharePartition, "number_of", lambda *_: 1)


def keeps_pending_on_failure(patch: pytest.MonkeyPatch) -> None:
    settle = SharePartition.settle
    patch.setattr(SharePartition, "settle", lambda self, c, stored, now: settle(self, c, True, now))


def never_archives(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(partition_module, "ended", lambda run, _: Change(run.first, run.last, AVAILABLE, run.deliveries))


def forgets_to_archive_aborted(patch: pytest.MonkeyPatch) -> None:
    take = Acquiring.take
    patch.setattr(Acquiring, "take", lambda self, b, o: take(self, [each._replace(aborted=False) for each in b], o))


def joins_unequal(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Run, "joins", lambda self, other: self.state == other.state)


def drops_too_much(patch: pytest.MonkeyPatch) -> None:
    drop = Runs.drop_below
    patch.setattr(Runs, "drop_below", lambda self, offset: drop(self, offset + 1))


def is_late(patch: pytest.MonkeyPatch) -> None:
    add = Timetable.add
    patch.setattr(Timetable, "add", lambda self, f, l, due, now: add(self, f, l, due + 1, now))  # noqa: E741


def loses_the_tail_of_an_expired_range(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(Timetable, "take", lambda self, now, _most, take=Timetable.take: take(self, now, 10**9)[:1])


def stores_a_start_too_far(patch: pytest.MonkeyPatch) -> None:
    stored = SharePartition.stored_start
    patch.setattr(SharePartition, "stored_start", lambda self, c: (stored(self, c)[0] + 1, stored(self, c)[1]))


def takes_neighbours_of_poison(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(acquiring_module.Acquiring, "_is_throttled", lambda *_: False)


MUTANTS = (
    forgets_deferred, ignores_members, keeps_pending_on_failure, never_archives, forgets_to_archive_aborted,
    joins_unequal, drops_too_much, is_late, loses_the_tail_of_an_expired_range, stores_a_start_too_far,
    takes_neighbours_of_poison,
)  # fmt: skip


@pytest.mark.parametrize("mutant", MUTANTS)
def test_mutants_are_noticed(mutant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch) -> None:
    mutant(monkeypatch)
    with pytest.raises((AssertionError, KeyError, IndexError, KafkaError)):
        live_many()


def live_many() -> None:
    for seed in range(60):
        Life(seed).run()
