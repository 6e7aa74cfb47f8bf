"""The wheel against a model that cannot be wrong: a plain list of deadlines, on the same manual clock."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from ixion.timer import ManualClock, SystemTimer, TimerTask
from tests.lives import lives

DELAYS = st.one_of(
    st.integers(-5, 50),
    st.integers(0, 1_000),
    st.integers(0, 200_000),
    st.just(2**62),
    st.sampled_from([20, 400, 8_000]),
)


class Recorder(TimerTask):
    def __init__(self, delay_ms: int, ran: list[Recorder]) -> None:
        super().__init__(delay_ms)
        self.ran = ran

    def run(self) -> None:
        self.ran.append(self)


class WheelAgainstList(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.clock = ManualClock(12_345)
        self.timer = SystemTimer("model", clock=self.clock, executor=lambda task: task.run())
        self.ran: list[Recorder] = []
        self.waiting: dict[Recorder, int] = {}  # the model: which task is due when
        self.idle: list[Recorder] = []

    @rule(delay_ms=DELAYS)
    def add(self, delay_ms: int) -> None:
        self.add_task(Recorder(delay_ms, self.ran))

    def add_task(self, task: Recorder) -> None:
        due_ms = self.clock.now_ms + task.delay_ms
        self.waiting.pop(task, None)
        waits = self.timer.add(task)
        assert waits == (task.delay_ms > 0)
        if waits:
            self.waiting[task] = due_ms
        else:
            assert self.ran.pop() is task
            self.idle.append(task)

    @precondition(lambda self: self.waiting)
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        task = data.draw(st.sampled_from(list(self.waiting)))
        assert task.cancel()
        del self.waiting[task]
        assert not task.cancel()
        assert not self.timer.add(task)

    @precondition(lambda self: self.waiting)
    @rule(data=st.data())
    def add_again_while_waiting(self, data: st.DataObject) -> None:
        self.add_task(data.draw(st.sampled_from(list(self.waiting))))

    @precondition(lambda self: self.idle)
    @rule(data=st.data())
    def add_again_after_it_ran(self, data: st.DataObject) -> None:
        task = data.draw(st.sampled_from(self.idle))
        self.idle.remove(task)
        self.add_task(task)

    @rule(ms=st.one_of(st.integers(0, 30), st.integers(0, 500), st.integers(0, 50_000)))
    def let_time_pass(self, ms: int) -> None:
        self.clock.advance(ms)
        self.timer.advance_clock(0)
        now_ms = self.clock.now_ms
        due = sorted(due_ms for due_ms in self.waiting.values() if due_ms <= now_ms)
        assert [self.waiting.pop(task) for task in self.ran] == due  # all that are due, none early, in order
        self.idle.extend(self.ran)
        self.ran.clear()

    @invariant()
    def counts_agree(self) -> None:
        seen = self.timer.snapshot()
        assert seen.size == self.timer.size == len(self.waiting)
        assert sum(sum(level.counts) for level in seen.levels) == len(self.waiting)
        for level in seen.levels:
            assert level.current_ms % level.tick_ms == 0
        if self.waiting:
            assert seen.next_due_ms is not None
            assert seen.next_due_ms <= min(self.waiting.values())

    def teardown(self) -> None:
        self.timer.shutdown()


TestWheelAgainstList = WheelAgainstList.TestCase
TestWheelAgainstList.settings = settings(max_examples=lives(40), stateful_step_count=60, deadline=None)
