"""A change goes on without its caller, and only a fault of it is news then."""

from __future__ import annotations

import asyncio
import gc

import pytest

from ixion.broker.controller.queue import ChangeQueue
from ixion.language.model.errors import ErrorCode, KafkaError


@pytest.mark.parametrize(
    ("error", "logged"),
    [
        (KafkaError(ErrorCode.NOT_CONTROLLER, "resigned"), []),
        (OSError("torn"), ["a change that nobody waits for failed"]),
    ],
)
def test_a_change_whose_caller_is_gone_logs_faults_only(
    error: Exception, logged: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    asyncio.run(change_without_caller(error))
    assert [record.message for record in caplog.records] == logged


async def change_without_caller(error: Exception) -> None:
    queue = ChangeQueue()
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def change() -> None:
        begun.set()
        await go_on.wait()
        raise error

    caller = asyncio.create_task(queue.run(change))
    await begun.wait()
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    go_on.set()
    async with queue.turn:
        pass
    await asyncio.sleep(0)
    del caller
    gc.collect()
    queue.stop()
