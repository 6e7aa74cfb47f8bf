"""Handlers in a task of their own: what happens if they fail."""

from __future__ import annotations

import asyncio
import logging
from types import SimpleNamespace
from typing import Any, cast

import pytest

from ixion.broker.apis.begin import begun
from ixion.broker.apis.call import Call
from ixion.broker.metadata.errors import SessionExpiredError
from ixion.language.wire.answer import LATER


@pytest.mark.parametrize(
    ("fault", "level", "has_traceback"),
    [(SessionExpiredError("/", "session 0x1 is over"), logging.WARNING, False), (ValueError("x"), logging.ERROR, True)],
)
def test_an_expired_session_is_one_line_and_a_bug_has_a_traceback(
    caplog: pytest.LogCaptureFixture, fault: Exception, level: int, has_traceback: bool
) -> None:
    """Found by the simulator: a broker gets LeaderAndIsr after its session has expired. The controller asks again."""
    failed: list[bool] = []
    call: Any = SimpleNamespace(
        header=SimpleNamespace(api_key=4), address="10.0.0.1", fail=lambda: failed.append(True), respond=None
    )

    async def handle(_: Call) -> Any:
        raise fault

    async def work() -> None:
        assert begun(handle)(cast(Call, call)) is LATER
        while not failed:
            await asyncio.sleep(0)

    asyncio.run(work())
    (record,) = caplog.records
    assert (record.levelno, bool(record.exc_info)) == (level, has_traceback)
    assert "API key 4 from 10.0.0.1" in record.getMessage()
