"""Long works in a lane: one after the other, each in turns, whatever becomes of the one before."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import pytest

from ixion.timer.lane import Lane
from tests.timer.test_turns import Ticking, count_to


class Loop:
    def __init__(self) -> None:
        self.soon: deque[Callable[..., object]] = deque()

    def call_soon(self, callback: Callable[..., object], *args: object) -> None:
        self.soon.append(lambda: callback(*args))

    def turn(self) -> bool:
        """One callback; False if there is none."""
        if self.soon:
            self.soon.popleft()()
            return True
        return False


def test_a_free_lane_does_short_work_at_once() -> None:
    loop, done = Loop(), []
    job = Lane(loop.call_soon).run(count_to(3, []), lambda result, error: done.append((result, error)))
    assert done == [(3, None)]
    assert not job.pending
    assert not loop.soon


def test_one_after_the_other_and_a_turn_for_each_round_of_the_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    Ticking(monkeypatch)
    loop, order = Loop(), []
    lane = Lane(loop.call_soon)
    seen: list[list[int]] = [[], [], []]
    for number in range(3):
        lane.run(count_to(12, seen[number]), lambda _result, _error, number=number: order.append(number))  # type: ignore[misc]
    assert [len(each) for each in seen] == [5, 0, 0]
    assert (lane.waiting, len(loop.soon)) == (3, 1)
    loop.turn()
    loop.turn()
    assert [len(each) for each in seen] == [12, 0, 0]
    rounds = 0
    while loop.turn():
        rounds += 1
    assert order == [0, 1, 2]
    assert rounds == 6
    assert lane.waiting == 0


def test_what_fails_or_is_cancelled_does_not_stop_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    Ticking(monkeypatch)
    loop = Loop()
    lane = Lane(loop.call_soon)
    ends: list[str] = []

    def broken() -> object:
        yield
        raise ValueError("broken")

    def fails(_result: object, _error: object) -> None:
        raise RuntimeError("the job's own fault")

    cancelled = lane.run(count_to(100, []), lambda _result, _error: ends.append("cancelled"))
    lane.run(broken(), lambda _result, error: ends.append(str(error)))  # type: ignore[arg-type]
    lane.run(count_to(1, []), fails)
    lane.run(count_to(1, []), lambda result, _error: ends.append(str(result)))
    cancelled.cancel()
    assert not cancelled.pending
    loop.turn()
    loop.turn()
    with pytest.raises(RuntimeError, match="the job's own fault"):
        loop.turn()
    while loop.turn():
        pass
    assert ends == ["broken", "1"]


def test_what_a_work_adds_when_it_is_done_comes_last() -> None:
    loop, order = Loop(), []
    lane = Lane(loop.call_soon)

    def again(_result: object, _error: object) -> None:
        order.append("first")
        lane.run(count_to(1, []), lambda _result, _error: order.append("added"))

    lane.run(count_to(1, []), again)
    while loop.turn():
        pass
    assert order == ["first", "added"]


def test_in_a_fair_lane_a_long_work_holds_no_short_one_up(monkeypatch: pytest.MonkeyPatch) -> None:
    Ticking(monkeypatch)
    loop, order = Loop(), []
    lane = Lane(loop.call_soon, fair=True)
    lane.run(count_to(12, []), lambda _result, _error: order.append("long"))
    lane.run(count_to(3, []), lambda _result, _error: order.append("short"))
    while loop.turn():
        pass
    assert order == ["short", "long"]
    assert lane.waiting == 0


def test_what_is_not_wanted_any_more_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    Ticking(monkeypatch)
    loop, done = Loop(), []
    seen: list[int] = []
    lane = Lane(loop.call_soon)
    wanted = [True]
    lane.run(count_to(12, seen), lambda result, _error: done.append(result), lambda: wanted[0])
    lane.run(count_to(1, []), lambda result, _error: done.append(result))
    wanted[0] = False
    while loop.turn():
        pass
    assert (len(seen), done) == (5, [1])


def test_short_work_can_pass_those_that_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    Ticking(monkeypatch)
    loop, order = Loop(), []
    lane = Lane(loop.call_soon)
    lane.run(count_to(12, []), lambda _result, _error: order.append("first"))
    lane.begin(count_to(3, []), lambda _result, _error: order.append("short"))
    assert order == ["short"]
    lane.begin(count_to(12, []), lambda _result, _error: order.append("long"))
    while loop.turn():
        pass
    assert order == ["short", "first", "long"]


def test_a_free_lane_goes_on_with_what_was_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    Ticking(monkeypatch)
    loop, done = Loop(), []
    Lane(loop.call_soon).begin(count_to(12, []), lambda result, _error: done.append(result))
    assert (done, len(loop.soon)) == ([], 1)
    while loop.turn():
        pass
    assert done == [12]
