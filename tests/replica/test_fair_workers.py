from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest

from ixion.broker.replica import fair_workers
from ixion.broker.replica.fair_workers import FairWorkers, Work
from tests.replica.world import HeldWorkers


class Crowd:
    """Fair workers with one thread, which takes its work when the test says so."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr("os.cpu_count", lambda: 2)
        self.loop = asyncio.new_event_loop()
        self.held = HeldWorkers()
        self.workers = FairWorkers(self.loop, lambda _count, _name: self.held)
        self.done: list[str] = []

    def submit(self, owner: str, size: int = 1, fault: Exception | None = None) -> Work:
        def run() -> str:
            if fault is not None:
                raise fault
            return owner

        def done(result: Any, error: Exception | None, used_ns: int) -> None:
            assert used_ns >= 0
            self.done.append(result if error is None else str(error))

        work = Work(owner, size, run, done)
        self.workers.submit(work)
        return work

    def work(self) -> list[str]:
        """All that there is, in the order in which it is done."""
        while self.held.waiting:
            assert len(self.held.waiting) == 1
            self.held.work()
            for _ in range(3):
                self.loop.call_soon(self.loop.stop)
                self.loop.run_forever()
        return self.done


@pytest.fixture
def crowd(monkeypatch: pytest.MonkeyPatch) -> Any:
    made = Crowd(monkeypatch)
    yield made
    made.loop.close()


def test_owners_take_turns(crowd: Crowd) -> None:
    many = random.randrange(5, 50)
    for _ in range(many):
        crowd.submit("greedy")
    crowd.submit("a")
    crowd.submit("b")
    crowd.submit("a")
    assert crowd.work() == ["greedy", "greedy", "a", "b", "greedy", "a", *["greedy"] * (many - 3)]


def test_a_fault_is_reported_and_stops_nothing(crowd: Crowd) -> None:
    crowd.submit("a", fault=ValueError("bad"))
    crowd.submit("a")
    assert crowd.work() == ["bad", "a"]


def test_work_of_clients_that_left_keeps_few_bytes(crowd: Crowd, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fair_workers, "ORPHANS_BYTES", 100)
    running = crowd.submit("a", 70)
    kept, dropped, small = crowd.submit("a", 30), crowd.submit("b", 1), crowd.submit("b", 0)
    for work in (running, kept, dropped, small, kept):
        crowd.workers.leave(work)
    assert crowd.workers.orphans_bytes == 100
    assert crowd.workers.waiting == 2
    assert crowd.work() == ["a", "a", "b"]
    assert crowd.workers.orphans_bytes == 0


def test_work_for_nobody_is_dropped(crowd: Crowd) -> None:
    first, second = crowd.submit("a"), crowd.submit("a")
    crowd.workers.drop(second)
    crowd.workers.drop(first)  # runs already
    assert crowd.work() == ["a"]
    assert crowd.workers.waiting == 0


def test_after_the_stop_nothing_is_done(crowd: Crowd) -> None:
    crowd.submit("a")
    crowd.submit("a")
    crowd.workers.stop()
    assert crowd.work() == []
