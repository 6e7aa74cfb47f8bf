"""Steps 2 and 17: one thread at a time."""

from __future__ import annotations

import os
import threading

import pytest

from ixion.clients.consumer.guard import ConcurrentUseError, SingleThread


def elsewhere(act: threading.Event, guard: SingleThread) -> list[str]:
    """What entering says on another thread."""
    said: list[str] = []

    def enter() -> None:
        try:
            with guard:
                said.append("entered")
        except ConcurrentUseError as error:
            said.append(str(error))
        act.set()

    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    return said


def test_step_2_a_second_thread_is_refused_while_the_first_is_inside() -> None:
    guard = SingleThread()
    with guard:
        with guard:  # a listener calls the consumer
            pass
        said = elsewhere(threading.Event(), guard)
    assert said == ["another thread uses this consumer; only wakeup() may be called from there"]


def test_step_17_the_consumer_is_free_afterwards() -> None:
    guard = SingleThread()
    with pytest.raises(ZeroDivisionError), guard:
        raise ZeroDivisionError
    assert elsewhere(threading.Event(), guard) == ["entered"]


def test_a_forked_child_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    guard = SingleThread()
    pid = os.getpid()
    monkeypatch.setattr(os, "getpid", lambda: pid + 1)
    with pytest.raises(ConcurrentUseError, match="belongs to the parent process"), guard:
        pass
