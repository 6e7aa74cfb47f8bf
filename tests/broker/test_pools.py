"""All work that blocks goes to the pools that a broker is given: without threads it starts, serves and stops."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, NoReturn

import pytest

from ixion.broker.controller.planning import NewTopic
from ixion.broker.startup.broker import Broker
from ixion.broker.startup.parts import Options
from ixion.config.sources import load
from ixion.language.model.errors import ErrorCode
from tests.broker.support import run


class AtOnce(Executor):
    """Does the work in the call that brings it."""

    def submit(self, fn: Callable[..., Any], /, *args: Any, **named: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(fn(*args, **named))
        except Exception as error:
            future.set_exception(error)
        return future


def no_thread(*_: object, **__: object) -> NoReturn:
    raise AssertionError("this work went to a thread")


def test_a_broker_works_on_the_pools_that_it_is_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ThreadPoolExecutor, "submit", no_thread)
    made: list[str] = []

    def make_pool(_: int, name: str) -> Executor:
        made.append(name)
        return AtOnce()

    async def scenario() -> None:
        for _ in range(2):  # the second start finds the logs of the first
            settings = ("listeners=PLAINTEXT://127.0.0.1:0", f"log.dirs={tmp_path}", "log.cleaner.enable=false")
            broker = Broker(load(assignments=list(settings)), Options(make_pool=make_pool))
            await broker.start()
            wish = NewTopic(name="t", partitions=3, replication=1, config={})
            (outcome,) = await broker.parts.controller.topics.create([wish])
            assert outcome.code in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)
            assert len(broker.parts.replicas.partitions) == 3
            await broker.stop(drain_ms=100)

    run(scenario)
    assert {"background", "metadata", "controller", "logs", "stop"} <= set(made)
