"""A herd is delivered in small steps, with pauses while clients produce; what may happen between two steps."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ixion.broker.schedules import pace
from ixion.broker.schedules.pace import ALONE, FREE, MOST, QUIET, SLICE, STEP, Pace
from ixion.broker.schedules.schedules import Schedules
from ixion.language.model.errors import ErrorCode
from tests.delay.world import DelayWorld, after, cancel
from tests.replica.world import TOPIC_ID, World

STEPS = 12
HERD = STEPS * STEP


class Turns:
    """An event loop on which turns wait until the test takes one."""

    def __init__(self, loop: asyncio.AbstractEventLoop | None = None) -> None:
        self.loop = loop
        self.waiting: deque[Callable[[], None]] = deque()
        self.pauses = 0

    def call_soon(self, call: Callable[..., None], *given: Any) -> None:
        self.waiting.append(partial(call, *given))

    def call_later(self, _delay_s: float, call: Callable[..., None], *given: Any) -> None:
        self.pauses += 1
        self.call_soon(call, *given)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.loop, name)


class SlicedWorld(DelayWorld):
    """Deliveries go on when the test calls `slice`."""

    turns: Turns

    def make_schedules(self, loop: asyncio.AbstractEventLoop) -> Schedules:
        self.turns = Turns(loop)
        return super().make_schedules(self.turns)  # type: ignore[arg-type]

    def settle(self) -> None:
        World.settle(self)

    def slice(self) -> bool:
        """False if there was nothing to do."""
        if not self.turns.waiting:
            return False
        self.turns.waiting.popleft()()
        self.settle()
        return True

    def finish(self) -> int:
        """How many slices were left."""
        taken = 0
        while self.slice():
            taken += 1
        return taken

    def send_herd(self) -> None:
        self.send(*(after(b"%d" % number, 60_000) for number in range(HERD)))
        self.finish()

    def lead_other(self) -> None:
        self.lead("other")
        self.flush()
        assert self.produce(topic="other")[0].code == ErrorCode.NONE

    def begin_herd(self, slices: int) -> None:
        """It is due, and so many slices of it are delivered."""
        self.advance(60_000)
        while len(self.values()) < slices * STEP:
            assert self.slice()


@pytest.fixture
def sliced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[SlicedWorld]:
    monkeypatch.setattr(pace, "ALONE", STEP)
    monkeypatch.setattr(pace, "FREE", 0)
    made = SlicedWorld(tmp_path)
    made.start()
    made.send_herd()
    yield made
    made.close()


HERD_VALUES = [b"%d" % number for number in range(HERD)]


def test_a7_a_slice_delivers_one_step(sliced: SlicedWorld) -> None:
    sliced.begin_herd(0)
    most, before = 0, 0
    while sliced.slice():
        most, before = max(most, len(sliced.values()) - before), len(sliced.values())
    assert most == STEP
    assert sliced.values() == HERD_VALUES


def test_a7_there_are_pauses_while_a_client_produces(sliced: SlicedWorld) -> None:
    sliced.lead_other()
    sliced.begin_herd(2)
    for number in range(2):
        (result,) = sliced.produce(topic="other")
        assert result.code == ErrorCode.NONE, "answered between two steps"
        while sliced.turns.pauses == number:
            assert sliced.slice()
    assert sliced.target.end_offset <= HERD + (2 + 2 * SLICE + 1) * STEP


def test_a7_a_herd_is_not_starved_by_constant_produce(sliced: SlicedWorld) -> None:
    sliced.lead_other()
    sliced.begin_herd(0)
    slices = 1
    sliced.produce(topic="other")
    while sliced.slice():
        sliced.produce(topic="other")
        slices += 1
    assert sliced.values() == HERD_VALUES
    assert slices <= 2 * (STEPS + HERD // 128 + 5), "each has delivered, or looked at the sockets"


def test_deliveries_alone_are_no_reason_to_pause(sliced: SlicedWorld) -> None:
    sliced.begin_herd(0)
    assert sliced.finish() >= STEPS
    assert sliced.values() == HERD_VALUES
    assert sliced.turns.pauses == 0


@pytest.mark.parametrize("slices", [1, 3, STEPS - 1])
def test_a7_a_kill_between_two_slices_loses_and_doubles_nothing(sliced: SlicedWorld, slices: int) -> None:
    sliced.begin_herd(slices)
    sliced.turns.waiting.clear()
    again = sliced.restart()
    assert again.values()[: slices * STEP] == HERD_VALUES[: slices * STEP]
    again.advance(1)
    assert again.values() == HERD_VALUES
    assert again.waiting == 0
    again.close()


def test_a7_a_stop_between_two_slices_delivers_no_more(sliced: SlicedWorld) -> None:
    sliced.begin_herd(2)
    sliced.schedules.stop()
    sliced.finish()
    assert sliced.values() == HERD_VALUES[: 2 * STEP]
    again = sliced.restart()
    again.advance(1)
    assert again.values() == HERD_VALUES
    again.close()


def test_a7_a_fail_over_between_two_slices_loses_and_doubles_nothing(sliced: SlicedWorld) -> None:
    sliced.begin_herd(2)
    sliced.replicas.follow("t", 0, TOPIC_ID, 2, 1, (2,), (1,), 0)
    sliced.finish()
    assert sliced.target.end_offset == HERD + 2 * STEP, "a follower delivers nothing"
    sliced.lead(epoch=2)
    sliced.flush()
    sliced.advance(1)
    sliced.finish()
    assert sliced.values() == HERD_VALUES


def test_a7_a_cancel_between_two_slices_counts_for_what_is_not_delivered(sliced: SlicedWorld) -> None:
    sliced.begin_herd(2)
    for offset in (0, HERD - 1):
        sliced.send(cancel(b"@%d" % offset))
    sliced.finish()
    assert sliced.values() == HERD_VALUES[:-1], "the first was delivered already, the last was not"
    assert sliced.schedules.figures.cancelled == 1


def test_a7_cancelling_all_between_two_slices_ends_it(sliced: SlicedWorld) -> None:
    sliced.begin_herd(3)
    sliced.send(cancel(b"*"))
    sliced.finish()
    assert sliced.values() == HERD_VALUES[: 3 * STEP]
    assert (sliced.waiting, sliced.state.size) == (0, 0)
    assert sliced.schedules.figures.cancelled == HERD - 3 * STEP


def test_a7_a_topic_deleted_between_two_slices_drops_the_rest(sliced: SlicedWorld) -> None:
    sliced.begin_herd(3)
    sliced.replicas.stop("t", 0, delete=True)
    sliced.schedules.topics_deleted(["t"])
    sliced.finish()
    assert sliced.schedules.figures.delivered == 3 * STEP
    assert sliced.schedules.figures.dropped == HERD - 3 * STEP
    assert not sliced.schedules.working


def test_a7_what_is_not_due_stays_between_slices(sliced: SlicedWorld) -> None:
    sliced.send(after(b"later", 60_001))
    sliced.finish()
    sliced.begin_herd(2)
    sliced.finish()
    assert sliced.values() == HERD_VALUES
    sliced.advance(1)
    sliced.finish()
    assert sliced.values() == [*HERD_VALUES, b"later"]


# The pace by itself.


class Producing:
    """A lane that is never empty, and a client."""

    def __init__(self) -> None:
        self.turns = Turns()
        self.count = 0
        self.taken = 0
        self.left: list[int] = []  # the core, before these turns
        self.pace = Pace(
            self.turns.call_soon, self.turns.call_later, lambda: self.count, lambda: self.left.append(self.taken)
        )
        self.begin()

    def begin(self) -> None:
        self.turns.waiting.clear()
        self.pace.begin(self._turn)

    def _turn(self) -> None:
        self.taken += 1
        self.pace.pause(self._turn)

    def pauses(self, slices: int, *, produce: bool) -> int:
        """In so many slices."""
        before, end = self.turns.pauses, self.taken + slices * SLICE
        while self.taken < end:
            self.count += produce
            self.turns.waiting.popleft()()
        assert len(self.turns.waiting) == 1, "there is always a next turn"
        return self.turns.pauses - before


def test_without_producers_there_are_no_pauses_and_steps_are_large() -> None:
    producing = Producing()
    assert producing.pauses(1_000, produce=False) == 0
    assert producing.pace.step() == ALONE
    producing.pauses(1, produce=True)
    assert producing.pace.step() == STEP


def test_a_small_herd_is_delivered_without_pauses() -> None:
    producing = Producing()
    assert producing.pauses(FREE, produce=True) == 0
    assert producing.pauses(5, produce=True) == 5
    producing.begin()
    assert producing.pauses(FREE, produce=True) == 0


def test_pauses_end_some_slices_after_the_last_produce() -> None:
    producing = Producing()
    producing.pauses(FREE, produce=True)
    assert QUIET - 2 <= producing.pauses(10 * QUIET, produce=False) <= QUIET
    assert producing.pauses(1, produce=True) == 1


def test_after_many_pauses_the_rest_comes_without_until_the_next_herd() -> None:
    producing = Producing()
    producing.pauses(FREE, produce=True)
    assert producing.pauses(2 * MOST, produce=True) == MOST
    producing.begin()
    assert producing.pauses(FREE + 10, produce=True) == 10


def test_what_the_sockets_bring_comes_before_the_next_step() -> None:
    """As asyncio does it: what is called soon runs in the next round, before what that round finds on the sockets."""
    producing = Producing()
    producing.count += 1
    producing.turns.waiting.popleft()()
    producing.turns.waiting.popleft()()
    assert producing.taken == 1, "one more round of the loop"
    producing.turns.waiting.popleft()()
    assert producing.taken == 2


def test_a_client_that_was_answered_gets_the_core_before_the_next_step() -> None:
    """The kernel may have woken it on the broker's core, where it waits until the broker sleeps."""
    producing = Producing()
    producing.count += 1
    producing.turns.waiting.popleft()()
    assert producing.left == [], "nobody has produced since the first step began"
    producing.turns.waiting.popleft()()
    producing.count += 1  # what the sockets brought between two steps
    producing.turns.waiting.popleft()()
    assert (producing.left, producing.taken) == ([1], 2)


def test_the_core_is_left_once_for_each_produce() -> None:
    producing = Producing()
    producing.pauses(50, produce=False)
    assert producing.left == []
    producing.pauses(1, produce=True)
    left = len(producing.left)
    assert left <= SLICE
    producing.pauses(50, produce=False)
    assert len(producing.left) <= left + 1
