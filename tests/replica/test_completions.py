"""Operations that complete together are finished a turn at a time."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from ixion.broker.replica.completions import GAP_NS, Completions
from ixion.timer.turns import TURN_NS


class Stage:
    """A clock that work moves, and a loop whose next turn comes when the test says so."""

    def __init__(self) -> None:
        self.now_ns = 10 * TURN_NS
        self.soon: list[Callable[[], None]] = []
        self.done: list[int] = []
        self.completions = Completions(lambda work: self.soon.append(work), lambda: self.now_ns)

    def complete(self, *numbers: int, cost_ns: int) -> None:
        for number in numbers:
            self.completions.run(lambda number=number: self.work(number, cost_ns))  # type: ignore[misc]

    def work(self, number: int, cost_ns: int) -> None:
        self.now_ns += cost_ns
        if number < 0:
            raise ValueError("it cannot be finished")
        self.done.append(number)

    def turn(self) -> None:
        soon, self.soon = list(self.soon), []
        for each in soon:
            each()


@pytest.fixture
def stage() -> Stage:
    return Stage()


def test_a_few_are_finished_at_once(stage: Stage) -> None:
    stage.complete(*range(10), cost_ns=1000)
    assert stage.done == list(range(10))
    assert stage.soon == []


def test_many_are_finished_a_turn_at_a_time_and_in_order(stage: Stage) -> None:
    stage.complete(*range(12), cost_ns=TURN_NS // 2)
    assert stage.done == [0, 1, 2]
    stage.turn()
    assert stage.done == list(range(6))
    stage.complete(12, cost_ns=1)  # nobody overtakes those that stand in line
    stage.turn()
    stage.turn()
    assert stage.done == list(range(12))
    stage.turn()
    assert stage.done == list(range(13))
    assert stage.soon == []


def test_a_pause_is_another_turn(stage: Stage) -> None:
    for number in range(20):
        stage.complete(number, cost_ns=TURN_NS)
        stage.now_ns += GAP_NS + 1
    assert stage.done == list(range(20))


def test_one_that_fails_does_not_keep_the_others(stage: Stage, caplog: pytest.LogCaptureFixture) -> None:
    stage.complete(0, 1, 2, -1, 4, cost_ns=TURN_NS)
    for _ in range(4):
        stage.turn()
    assert stage.done == [0, 1, 2, 4]
    assert "could not be finished" in caplog.text
