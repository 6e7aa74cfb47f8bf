"""The purgatory's cases: waiting, being woken, expiring, being purged, and what bad operations do."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Hashable, Iterator

import pytest

from ixion.purgatory import DelayedOperation, DelayedOperationPurgatory
from ixion.purgatory.operation import abandon
from ixion.timer import LoopTimer, ManualClock, SystemTimer, TimerClosedError


class Operation(DelayedOperation):
    def __init__(self, delay_ms: int = 100_000) -> None:
        super().__init__(delay_ms)
        self.ready = False
        self.completions = 0
        self.expirations = 0

    def try_complete(self) -> bool:
        return self.ready and self.force_complete()

    def on_complete(self) -> None:
        self.completions += 1

    def on_expiration(self) -> None:
        self.expirations += 1


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


@pytest.fixture
def purgatory(clock: ManualClock) -> Iterator[DelayedOperationPurgatory]:
    timer = SystemTimer("test", clock=clock, executor=lambda task: task.run())
    purgatory = DelayedOperationPurgatory("test", timer=timer, reaper=False)
    yield purgatory
    purgatory.shutdown()
    timer.shutdown()


def test_a_condition_that_holds_completes_at_once(purgatory: DelayedOperationPurgatory) -> None:
    operation = Operation()
    operation.ready = True
    assert purgatory.try_complete_else_watch(operation, ["a", "b"])
    assert (purgatory.watched, purgatory.delayed, operation.completions) == (0, 0, 1)


def test_a_check_wakes_only_those_that_watch_the_key(purgatory: DelayedOperationPurgatory) -> None:
    first, second = Operation(), Operation()
    assert not purgatory.try_complete_else_watch(first, ["test1"])
    assert not purgatory.try_complete_else_watch(second, ["test2"])
    assert purgatory.check_and_complete("test1") == 0
    first.ready = second.ready = True
    assert purgatory.check_and_complete("test1") == 1
    assert (first.completed, second.completed) == (True, False)
    assert purgatory.check_and_complete("test1") == 0
    assert purgatory.check_and_complete("test2") == 1
    assert (purgatory.watched, purgatory.delayed) == (0, 0)


def test_an_operation_without_an_event_expires(purgatory: DelayedOperationPurgatory, clock: ManualClock) -> None:
    short, long = Operation(20), Operation(200_000)
    for operation in (short, long):
        purgatory.try_complete_else_watch(operation, ["k"])
    clock.advance(20)
    assert purgatory.advance_clock(0)
    assert (short.completions, short.expirations) == (1, 1)
    assert (long.completed, purgatory.delayed) == (False, 1)
    long.ready = True
    assert purgatory.check_and_complete("k") == 1
    clock.advance(300_000)
    purgatory.advance_clock(0)
    assert (long.completions, long.expirations) == (1, 0)


def test_completing_takes_it_out_of_the_timer(purgatory: DelayedOperationPurgatory) -> None:
    operation = Operation()
    purgatory.try_complete_else_watch(operation, ["k"])
    assert purgatory.timer.size == 1
    operation.force_complete()
    assert (purgatory.timer.size, purgatory.delayed) == (0, 0)


def test_counts_of_watched_and_delayed(purgatory: DelayedOperationPurgatory) -> None:
    operations = [Operation() for _ in range(3)]
    purgatory.try_complete_else_watch(operations[0], ["a"])
    purgatory.try_complete_else_watch(operations[1], ["a", "b"])
    purgatory.try_complete_else_watch(operations[2], ["a", "b", "c"])
    assert (purgatory.watched, purgatory.delayed) == (6, 3)
    operations[1].force_complete()
    assert (purgatory.watched, purgatory.delayed) == (6, 2)  # still on two lists
    assert purgatory.check_and_complete("a") == 0  # a check clears the list it looks at
    assert (purgatory.watched, purgatory.delayed) == (5, 2)
    assert purgatory.purge() == 1
    assert (purgatory.watched, purgatory.delayed) == (4, 2)


def test_a_purge_is_due_when_more_than_the_interval_are_over(clock: ManualClock) -> None:
    timer = SystemTimer("purge", clock=clock)
    purgatory = DelayedOperationPurgatory("purge", timer=timer, reaper=False, purge_interval=10)
    operations = [Operation() for _ in range(20)]
    for operation in operations:
        purgatory.try_complete_else_watch(operation, ["a", "b"])
    for operation in operations[:10]:
        operation.force_complete()
    purgatory.advance_clock(0)
    assert purgatory.watched == 40  # ten are over: not yet more than ten
    operations[10].force_complete()
    purgatory.advance_clock(0)
    assert purgatory.watched == 18
    assert purgatory.snapshot().purged == 22
    timer.shutdown()


def test_a_purge_waits_until_it_is_worth_walking_past_all_that_wait(clock: ManualClock) -> None:
    timer = SystemTimer("crowd", clock=clock)
    purgatory = DelayedOperationPurgatory("crowd", timer=timer, reaper=False, purge_interval=10)
    operations = [Operation() for _ in range(500)]
    for operation in operations:
        purgatory.try_complete_else_watch(operation, ["a"])
    for operation in operations[:100]:
        operation.force_complete()
    purgatory.advance_clock(0)
    assert purgatory.watched == 500  # 100 over, 400 waiting: a quarter, not more
    operations[100].force_complete()
    purgatory.advance_clock(0)
    assert purgatory.watched == 399
    timer.shutdown()


def test_long_lists_keep_their_order_through_purges(purgatory: DelayedOperationPurgatory) -> None:
    order: list[int] = []

    class Numbered(Operation):
        def __init__(self, number: int) -> None:
            super().__init__()
            self.number = number

        def on_complete(self) -> None:
            order.append(self.number)

    operations = [Numbered(number) for number in range(3_000)]
    for operation in operations:
        purgatory.try_complete_else_watch(operation, ["k"])
    for operation in operations:
        if operation.number % 3:
            operation.force_complete()
    order.clear()
    assert purgatory.purge() == 2_000
    assert purgatory.watched == 1_000
    for operation in operations:
        operation.ready = True
    assert purgatory.check_and_complete("k") == 1_000
    assert order == list(range(0, 3_000, 3))
    assert (purgatory.watched, purgatory.snapshot().keys) == (0, 0)


def test_cancel_for_key(purgatory: DelayedOperationPurgatory, clock: ManualClock) -> None:
    both, other = Operation(50), Operation(50)
    purgatory.try_complete_else_watch(both, ["a", "b"])
    purgatory.try_complete_else_watch(other, ["b"])
    assert purgatory.cancel_for_key("a") == [both]
    assert purgatory.cancel_for_key("a") == []
    assert (purgatory.delayed, purgatory.timer.size) == (1, 1)
    both.ready = other.ready = True
    assert purgatory.check_and_complete("b") == 1
    clock.advance(100)
    purgatory.advance_clock(0)
    assert (both.completions, both.expirations, other.completions) == (0, 0, 1)
    assert (purgatory.watched, purgatory.delayed) == (0, 0)
    assert both.force_complete()  # the caller that cancelled it may still complete it


def test_an_operation_that_raises_is_logged_counted_and_alone(
    purgatory: DelayedOperationPurgatory, clock: ManualClock, caplog: pytest.LogCaptureFixture
) -> None:
    class Broken(Operation):
        def try_complete(self) -> bool:
            raise KeyError("log is gone")

    class BrokenAnswer(Operation):
        def on_complete(self) -> None:
            raise OSError("connection is gone")

    broken, answer, good = Broken(10), BrokenAnswer(), Operation()
    for operation in (broken, answer, good):
        assert not purgatory.try_complete_else_watch(operation, ["k"])
    answer.ready = good.ready = True
    assert purgatory.check_and_complete("k") == 2
    assert (answer.completed, good.completions, broken.completed) == (True, 1, False)
    assert purgatory.snapshot().failed == 4  # two tries when it came, one when it was checked, one answer
    assert "Broken raised" in caplog.text
    assert "BrokenAnswer raised" in caplog.text
    clock.advance(10)
    purgatory.advance_clock(0)
    assert broken.expirations == 1  # it still ends at its timeout
    assert (purgatory.watched, purgatory.delayed) == (1, 0)


def test_an_operation_must_watch_something_that_can_be_a_key(purgatory: DelayedOperationPurgatory) -> None:
    with pytest.raises(ValueError, match="at least one key"):
        purgatory.try_complete_else_watch(Operation(), [])
    operation = Operation()
    with pytest.raises(TypeError, match="unhashable"):
        purgatory.try_complete_else_watch(operation, ["a", ["b"]])  # type: ignore[list-item]
    assert (purgatory.delayed, purgatory.timer.size) == (0, 0)
    operation.ready = True
    assert purgatory.check_and_complete("a") == 0


@pytest.mark.parametrize(("shards", "purge_interval"), [(0, 1000), (512, -1)])
def test_bad_settings(shards: int, purge_interval: int) -> None:
    with pytest.raises(ValueError, match="must"):
        DelayedOperationPurgatory("bad", reaper=False, shards=shards, purge_interval=purge_interval)


def test_any_hashable_is_a_key_and_shards_do_not_matter(clock: ManualClock) -> None:
    for shards in (1, 2, 512):
        purgatory = DelayedOperationPurgatory("keys", reaper=False, shards=shards)
        keys = [("orders", 0), "orders-0", 7, -1, None, frozenset("ab"), hash]
        operations = [Operation() for _ in keys]
        for key, operation in zip(keys, operations, strict=True):
            purgatory.try_complete_else_watch(operation, [key])
            operation.ready = True
        assert [purgatory.check_and_complete(key) for key in keys] == [1] * len(keys)
        purgatory.shutdown()


def test_the_reaper_thread_advances_and_purges_and_ends() -> None:
    before = set(threading.enumerate())
    purgatory = DelayedOperationPurgatory("reaped", purge_interval=5)
    operations = [Operation(3) for _ in range(50)]
    for operation in operations:
        purgatory.try_complete_else_watch(operation, ["a", "b"])
    while purgatory.watched:
        threading.Event().wait(0.005)
    assert all((operation.completions, operation.expirations) == (1, 1) for operation in operations)
    purgatory.shutdown()
    purgatory.shutdown()
    assert set(threading.enumerate()) <= before, "one of an earlier test may end meanwhile"
    with pytest.raises(TimerClosedError, match="reaped"):
        purgatory.try_complete_else_watch(Operation(), ["a"])


def test_an_event_loop_reaps_without_a_thread() -> None:
    async def scenario() -> None:
        before = threading.active_count()
        clock = ManualClock()
        timer = LoopTimer(clock=clock)
        purgatory = DelayedOperationPurgatory("loop", timer=timer, purge_interval=100)
        assert threading.active_count() == before
        expiring = Operation(10)
        purgatory.try_complete_else_watch(expiring, ["a"])
        clock.advance(10)
        await asyncio.sleep(0.001)
        assert expiring.expirations == 1
        for _ in range(5_000):
            operation = Operation()
            purgatory.try_complete_else_watch(operation, ["a", "b"])
            operation.force_complete()
            await asyncio.sleep(0)
        assert purgatory.watched < 1_000  # purged on the way, between two turns of the loop
        purgatory.shutdown()
        timer.shutdown()

    asyncio.run(scenario())


def test_purgatories_may_share_a_timer(clock: ManualClock) -> None:
    timer = SystemTimer("shared", clock=clock, executor=lambda task: task.run())
    one = DelayedOperationPurgatory("one", timer=timer, reaper=False)
    two = DelayedOperationPurgatory("two", timer=timer, reaper=False)
    one.try_complete_else_watch(Operation(5), ["k"])
    two.try_complete_else_watch(Operation(9), ["k"])
    assert (one.delayed, two.delayed, timer.size) == (1, 1, 2)
    one.shutdown()  # leaves the timer alone
    clock.advance(5)
    timer.advance_clock(0)
    assert (one.delayed, two.delayed, timer.size) == (0, 1, 1)
    timer.shutdown()


class OneByOne(Operation):
    """Notes the keys that it is asked to look at; it is over when it has seen `last`."""

    def __init__(self, last: str) -> None:
        super().__init__(100)
        self.last = last
        self.looked: list[Hashable] = []

    def try_complete_for(self, key: Hashable) -> bool:
        self.looked.append(key)
        return key == self.last and self.force_complete()


def test_very_many_keys_are_watched_one_in_a_step(purgatory: DelayedOperationPurgatory) -> None:
    operation = OneByOne("none")
    steps = purgatory.watch_in_steps(operation, "abc")
    next(steps)
    assert (operation.looked, purgatory.watched, purgatory.delayed) == (["a"], 1, 0)
    purgatory.check_and_complete("a")
    purgatory.check_and_complete("c")  # not watched yet, and looked at when it is
    assert list(steps) == [None, None]
    assert operation.looked == ["a", "a", "b", "c"]
    assert (purgatory.watched, purgatory.delayed) == (3, 1)
    assert operation.force_complete()
    assert purgatory.delayed == 0


def test_steps_end_when_a_key_completes_the_operation(purgatory: DelayedOperationPurgatory) -> None:
    operation = OneByOne("b")
    assert sum(1 for _ in purgatory.watch_in_steps(operation, "abc")) == 1
    assert (operation.looked, operation.completions, purgatory.delayed) == (["a", "b"], 1, 0)


@pytest.mark.parametrize("end", [abandon, DelayedOperation.force_complete])
def test_steps_end_when_the_operation_is_over(
    purgatory: DelayedOperationPurgatory, end: Callable[[DelayedOperation], bool]
) -> None:
    operation = OneByOne("none")
    steps = purgatory.watch_in_steps(operation, "abc")
    next(steps)
    assert end(operation)
    assert list(steps) == []
    assert (operation.looked, purgatory.watched, purgatory.delayed) == (["a"], 1, 0)
