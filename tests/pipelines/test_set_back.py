"""A wall clock that is set back: Spark would wait for a time of day that is far away."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from devtools.parts import need_module


class Query:
    """A query that does nothing until it is stopped, and counts how often it was waited for."""

    def __init__(self) -> None:
        self.waited = 0
        self.isActive = True
        self.recentProgress: list[Any] = []

    def awaitTermination(self, _: float) -> bool:  # noqa: N802 - Spark's name
        self.waited += 1
        assert self.waited < 100, "it goes on for ever"
        return not self.isActive

    def stop(self) -> None:
        self.isActive = False


class Writer:
    def __init__(self) -> None:
        self.stopping = threading.Event()
        self.busy = threading.Event()
        self.figures: dict[int, Any] = {}


def followed(*clock: float, stop_at: int = 0) -> Any:
    """A run in which the clock shows these, and then the last for ever; the caller asks for an end at one of them."""
    need_module("pyspark")
    from ixion.pipelines.run.progress import Progress

    query: Any = Query()
    writer: Any = Writer()
    left = list(clock)

    def wall() -> float:
        if len(left) == stop_at:
            progress.stop()
        return left.pop(0) if len(left) > 1 else left[0]

    progress = Progress(query, writer, [], {}, wall=wall)
    assert list(progress.follow()) == []
    assert not query.isActive
    return progress


@pytest.mark.parametrize("clock", [(0.0, -3600.0), (0.0, 0.0, 3600.0, 3600.0, 0.0)], ids=["back", "forth and back"])
def test_the_query_is_ended_and_started_again(clock: tuple[float, ...]) -> None:
    progress = followed(*clock)
    assert progress.set_back
    assert not progress.stopped
    assert not progress.given_up


def test_a_small_step_or_one_forward_ends_nothing() -> None:
    progress = followed(0.0, -4.0, -4.0, 3600.0, 3600.0, 3598.0, stop_at=1)
    assert progress.stopped
    assert not progress.set_back


def test_the_callers_wish_counts() -> None:
    progress = followed(0.0, 0.0, -3600.0, stop_at=2)
    assert progress.stopped
    assert not progress.set_back


def test_iceberg_refuses_to_go_back_in_time_and_that_is_reported() -> None:
    need_module("pyspark")
    from ixion.pipelines.spark.explain import explain

    said = "java.lang.IllegalArgumentException: Invalid update timestamp 17: before last snapshot log entry at 99"
    error = explain(RuntimeError(f"Job aborted\nCaused by: {said}"))
    assert error.retry
    assert "the clock shows an earlier time" in str(error)
    assert "before last snapshot log entry at 99" in str(error)
