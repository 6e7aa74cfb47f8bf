"""How the benchmark of delayed delivery judges a system, shown with one that is made up."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from queue import SimpleQueue

import pytest

from benchmarks.delay import NATS, OURS, PULSAR, RIVALS, WITHOUT, contenders
from benchmarks.framework import Session
from benchmarks.loads.schedulers import messages
from benchmarks.loads.schedulers.messages import herd, lateness, until_delivered


class Clock(threading.local):
    """Each thread has its own, so that a consumer may be ahead of the thread that schedules."""

    ms = 1_000_000.0

    def __call__(self) -> float:
        return self.ms


class MadeUp:
    """Each message arrives `late_ms` of its number after it is due."""

    pid = 0

    def __init__(self, clock: Clock, late_ms: Callable[[int], float], early_ms: int = 0) -> None:
        self.early_ms = early_ms
        self.scheduling_ms = [0.0]  # how long that takes, call by call; the last one counts for all that follow
        self.calls = 0
        self.delivered_again: list[bytes] = []
        self._clock = clock
        self._late_ms = late_ms
        self._ready: SimpleQueue[tuple[float, bytes]] = SimpleQueue()

    def schedule(self, messages: Iterable[tuple[int, bytes]]) -> None:
        self._clock.ms += self.scheduling_ms[min(self.calls, len(self.scheduling_ms) - 1)]
        self.calls += 1
        for payload in self.delivered_again:
            self._ready.put((self._clock.ms, payload))
        for number, (due_ms, payload) in enumerate(messages):
            self._ready.put((due_ms + self._late_ms(number), payload))

    def arrivals(self, count: int) -> Iterator[bytes]:
        for _ in range(count):
            self._clock.ms, payload = self._ready.get()
            yield payload

    def kill(self) -> None:
        raise NotImplementedError


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(messages, "now_ms", made)
    return made


def test_lateness_is_sorted_and_may_be_negative_for_a_system_that_allows_it(clock: Clock) -> None:
    found = lateness(MadeUp(clock, lambda number: (300.0, -900.0, 5.0)[number], early_ms=1_000), 3, 500)
    assert found == [-900.0, 5.0, 300.0]


@pytest.mark.parametrize("allowed_ms", [0, 1_000])
def test_a_message_that_comes_earlier_than_allowed_ends_the_benchmark(clock: Clock, allowed_ms: int) -> None:
    with pytest.raises(RuntimeError, match="early"):
        lateness(MadeUp(clock, lambda _number: -allowed_ms - 1.0, early_ms=allowed_ms), 10, 500)


def test_messages_that_were_due_before_all_were_scheduled_are_not_counted(clock: Clock) -> None:
    slow = MadeUp(clock, lambda _number: 1.0)
    slow.scheduling_ms = [messages.LEAD_MS + 1.0, messages.LEAD_MS + 1.0]  # the second time it gets twice as long
    assert lateness(slow, 10, 500) == [1.0] * 10
    assert slow.calls == 2


def test_a_system_that_may_be_early_must_be_asked_before_that(clock: Clock) -> None:
    slow = MadeUp(clock, lambda _number: 1.0, early_ms=1_000)
    slow.scheduling_ms = [messages.LEAD_MS - 999.0, 0.0]
    lateness(slow, 10, 500)
    assert slow.calls == 2


def test_a_system_that_never_schedules_in_time_ends_the_benchmark(clock: Clock) -> None:
    slow = MadeUp(clock, lambda _number: 1.0)
    slow.scheduling_ms = [messages.MOST_LEAD_MS + 1.0]
    with pytest.raises(RuntimeError, match="could not be scheduled"):
        lateness(slow, 10, 500)


def test_a_herd_is_counted_from_the_moment_at_which_it_is_due(clock: Clock) -> None:
    assert herd(MadeUp(clock, lambda number: 100.0 + number), 101) == pytest.approx(101 / 0.2)


def test_a_herd_that_begins_early_is_counted_from_its_first_message(clock: Clock) -> None:
    assert herd(MadeUp(clock, lambda number: number - 500.0, early_ms=1_000), 101) == pytest.approx(101 / 0.1)


def test_messages_that_come_once_more_after_a_restart_are_not_the_one_that_is_waited_for(clock: Clock) -> None:
    system = MadeUp(clock, lambda _number: 1.0)
    system.delivered_again = [b"1:0:old", b"2:1:old"]
    taken: list[bytes] = []
    arrivals = system.arrivals

    def watched(count: int) -> Iterator[bytes]:
        for payload in arrivals(count):
            taken.append(payload)
            yield payload

    system.arrivals = watched  # type: ignore[method-assign]
    until_delivered(system)
    assert [payload.rpartition(b":")[2] for payload in taken] == [b"old", b"old", b"this one"]


def chosen(monkeypatch: pytest.MonkeyPatch, **environment: str) -> set[str]:
    for name in ("IXION_BENCH_ALONE", "IXION_BENCH_RIVALS"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with ExitStack() as stack:
        return set(contenders(Session(quick=True, stack=stack)))


def test_the_rivals_are_chosen_by_how_their_names_begin(monkeypatch: pytest.MonkeyPatch) -> None:
    assert chosen(monkeypatch) == {OURS, WITHOUT, *RIVALS}
    assert chosen(monkeypatch, IXION_BENCH_ALONE="1") == {OURS, WITHOUT}
    assert chosen(monkeypatch, IXION_BENCH_RIVALS="Pulsar,NATS") == {OURS, WITHOUT, PULSAR, NATS}
    with pytest.raises(ValueError, match="names none of these: NATS"):
        chosen(monkeypatch, IXION_BENCH_RIVALS="pulsar")
