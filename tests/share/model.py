"""A share partition as a dictionary of offsets: slow, and plain enough to be believed."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise

from ixion.broker.share.acknowledgement import ACCEPT, RELEASE, RENEW, Acknowledgement
from ixion.broker.share.partition import SharePartition
from ixion.broker.share.states import ACKNOWLEDGED, ACQUIRED, ARCHIVED, AVAILABLE, DEFERRED, PENDING
from ixion.broker.share.terms import Terms


@dataclass
class Offset:
    state: int = AVAILABLE
    count: int = 0
    member: str = ""
    when: int = 0
    to: Offset | None = None  # what it becomes when its acknowledgement is stored


@dataclass
class Model:
    terms: Terms
    start: int = 0
    end: int = 0
    offsets: dict[int, Offset] = field(default_factory=dict)
    accepted: dict[int, int] = field(default_factory=dict)  # how often each offset was

    def settle_start(self) -> None:
        while self.start < self.end and self.offsets[self.start].state in (ACKNOWLEDGED, ARCHIVED):
            del self.offsets[self.start]
            self.start += 1

    def count(self, *states: int) -> int:
        return sum(each.state in states for each in self.offsets.values())

    @property
    def held(self) -> int:
        return self.count(ACQUIRED, PENDING, AVAILABLE)

    def acquired(self, offset: int, count: int, member: str, until_ms: int) -> None:
        """The partition says that it gave this offset to the member: check that it could, and note it."""
        if offset >= self.end:
            assert offset == self.end, f"{offset} was delivered before {self.end}"
            self.offsets[offset] = Offset()
            self.end += 1
        each = self.offsets[offset]
        assert each.state == AVAILABLE, f"{offset} was delivered in state {each.state}"
        assert count == each.count + 1
        self.offsets[offset] = Offset(ACQUIRED, count, member, until_ms)

    def archived(self, first: int, last: int) -> None:
        for offset in range(first, last + 1):
            if offset >= self.end:
                self.offsets[offset] = Offset()
                self.end = offset + 1
            assert self.offsets[offset].state == AVAILABLE
            self.offsets[offset] = Offset(ARCHIVED, self.offsets[offset].count)
        self.settle_start()

    def may_acknowledge(self, member: str, batches: list[Acknowledgement]) -> bool:
        for batch in batches:
            if batch.last < self.start:
                continue
            if batch.last >= self.end:
                return False
            for offset in range(max(batch.first, self.start), batch.last + 1):
                each = self.offsets[offset]
                if each.state != ACQUIRED or each.member != member:
                    return False
        return True

    def acknowledge(self, batches: list[Acknowledgement], now_ms: int) -> list[int]:
        """Returns the offsets that wait for a write."""
        waiting: list[int] = []
        for batch in batches:
            for offset in range(max(batch.first, self.start), batch.last + 1):
                each = self.offsets[offset]
                kind = batch.type_of(offset)
                if kind == RENEW:
                    each.when = now_ms + self.terms.lock_ms
                    continue
                if kind == ACCEPT:
                    to = Offset(ACKNOWLEDGED, each.count)
                elif kind == RELEASE and each.count < self.terms.delivery_limit:
                    delay = batch.delay_ms or self.terms.backoff.delay_ms(each.count, 0)
                    to = Offset(DEFERRED, each.count, "", now_ms + delay) if delay else Offset(AVAILABLE, each.count)
                else:
                    to = Offset(ARCHIVED, each.count)
                self.offsets[offset] = Offset(PENDING, each.count, each.member, each.when, to)
                waiting.append(offset)
        return waiting

    def settle(self, offsets: list[int], stored: bool, gone: set[str]) -> None:
        for offset in offsets:
            each = self.offsets.get(offset)
            if each is None:
                continue
            assert each.to is not None
            if stored:
                self.offsets[offset] = each.to
                if each.to.state == ACKNOWLEDGED:
                    self.accepted[offset] = self.accepted.get(offset, 0) + 1
            elif each.member in gone:
                self.offsets[offset] = Offset(AVAILABLE, each.count)
            else:
                self.offsets[offset] = Offset(ACQUIRED, each.count, each.member, each.when)
        self.settle_start()

    def back(self, each: Offset, delay: int, now_ms: int) -> Offset:
        if each.count >= self.terms.delivery_limit:
            return Offset(ARCHIVED, each.count)
        return Offset(DEFERRED, each.count, "", now_ms + delay) if delay else Offset(AVAILABLE, each.count)

    def expire(self, now_ms: int) -> None:
        backoff = self.terms.backoff
        for offset, each in list(self.offsets.items()):
            if each.state == ACQUIRED and each.when <= now_ms:
                delay = backoff.delay_ms(each.count, 0) if backoff.on_timeout else 0
                self.offsets[offset] = self.back(each, delay, now_ms)
            elif each.state == DEFERRED and each.when <= now_ms:
                self.offsets[offset] = Offset(AVAILABLE, each.count)
        self.settle_start()

    def release(self, member: str) -> None:
        for offset, each in list(self.offsets.items()):
            if each.state == ACQUIRED and each.member == member:
                self.offsets[offset] = self.back(each, 0, 0)
        self.settle_start()

    def move_start(self, offset: int) -> None:
        for gone in range(self.start, min(offset, self.end)):
            del self.offsets[gone]
        self.start = max(self.start, offset)
        self.end = max(self.end, self.start)
        self.settle_start()

    def compare(self, partition: SharePartition) -> None:
        assert (partition.start, partition.end) == (self.start, self.end)
        shown: dict[int, tuple[int, int, int]] = {}
        runs = partition.runs
        behind = partition.start
        for run in runs.all():
            assert run.first == behind <= run.last
            behind = run.last + 1
            for offset in range(run.first, run.last + 1):
                shown[offset] = (run.state, run.deliveries, run.when)
        assert behind == partition.end
        expected = {at: (each.state, each.count, each.when) for at, each in self.offsets.items()}
        assert shown == expected
        for state in (AVAILABLE, ACQUIRED, ACKNOWLEDGED, ARCHIVED, DEFERRED, PENDING):
            assert runs.tallies[state] == self.count(state), state
        neighbours = runs.all()
        assert not any(one.joins(next_) for one, next_ in pairwise(neighbours))
        lived = [each for each in self.offsets.values() if each.state in (ACQUIRED, DEFERRED)]
        if lived:  # nothing is forgotten: the wheel is set for the earliest or before it
            assert 0 <= partition.timetable.next_ms <= min(each.when for each in lived)
        assert all(times == 1 for times in self.accepted.values())
