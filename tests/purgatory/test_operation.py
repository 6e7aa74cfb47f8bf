"""A delayed operation completes exactly once, however many threads try."""

from __future__ import annotations

import threading

import pytest

from ixion.purgatory import DelayedOperation


class Operation(DelayedOperation):
    def __init__(self, delay_ms: int = 1_000) -> None:
        super().__init__(delay_ms)
        self.ready = False
        self.tries = 0
        self.completions = 0
        self.expirations = 0

    def try_complete(self) -> bool:
        self.tries += 1
        return self.ready and self.force_complete()

    def on_complete(self) -> None:
        self.completions += 1

    def on_expiration(self) -> None:
        self.expirations += 1


def test_only_the_first_completion_counts() -> None:
    operation = Operation()
    assert operation.force_complete()
    assert not operation.force_complete()
    operation.run()  # the timer comes too late
    assert (operation.completed, operation.completions, operation.expirations) == (True, 1, 0)


def test_expiry_completes_and_then_reports() -> None:
    operation = Operation()
    operation.run()
    operation.run()
    assert (operation.completions, operation.expirations) == (1, 1)


def test_the_condition_decides() -> None:
    operation = Operation()
    assert not operation.safe_try_complete()
    operation.ready = True
    assert operation.safe_try_complete()
    assert not operation.safe_try_complete()
    assert operation.completions == 1


def test_an_exception_in_the_check_lets_go_of_the_try_lock() -> None:
    class Broken(Operation):
        def try_complete(self) -> bool:
            self.tries += 1
            raise KeyError("no such partition")

    operation = Broken()
    for _ in range(2):
        with pytest.raises(KeyError):
            operation.safe_try_complete()
    assert operation.tries == 2


def test_a_subclass_that_forgot_a_method_says_which() -> None:
    with pytest.raises(NotImplementedError, match="DelayedOperation needs a try_complete"):
        DelayedOperation(5).safe_try_complete()
    with pytest.raises(NotImplementedError, match="DelayedOperation needs an on_complete"):
        DelayedOperation(5).force_complete()


def test_many_threads_complete_it_once() -> None:
    for _ in range(100):
        operation = Operation()
        operation.ready = True
        start = threading.Barrier(4)
        wins: list[bool] = []

        def race(operation: Operation = operation, start: threading.Barrier = start, wins: list[bool] = wins) -> None:
            start.wait()
            wins.append(operation.safe_try_complete())
            wins.append(operation.force_complete())

        threads = [threading.Thread(target=race) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert (wins.count(True), operation.completions) == (1, 1)
