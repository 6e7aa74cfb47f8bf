"""Requests that wait for the controller: how long, and what its failures become.

The controller's work goes on after the request's timeout; the client gets REQUEST_TIMED_OUT and can look for the
result later. With a timeout of 0 or less the answer waits until the work is done. (Kafka answers REQUEST_TIMED_OUT at
once, which librdkafka takes for success.)

A metadata store that fails or refuses a change is not the client's fault, and must not cost it the connection: the
answer has an error code. A broker that loses ZooKeeper in the middle answers with codes that clients try again: a lost
session and a lost connection are faults of the network, logged in one line.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Coroutine
from typing import Any, TypeVar

from ixion.metadata.errors import (
    ConnectionLostError,
    MetadataError,
    SessionExpiredError,
    StoreFullError,
    StoreUnusableError,
)
from ixion.model.errors import ErrorCode, KafkaError
from ixion.timer.timer import Timer

logger = logging.getLogger(__name__)

T = TypeVar("T")

_left_behind: set[asyncio.Future[Any]] = set()  # the loop itself holds them weakly only


async def in_time(timer: Timer, timeout_ms: int, work: Coroutine[Any, Any, T]) -> T:
    """What `work` returns; KafkaError REQUEST_TIMED_OUT if that takes too long."""
    if timeout_ms <= 0:
        return await translated(work)
    loop = asyncio.get_running_loop()
    task = loop.create_task(translated(work))
    over: asyncio.Future[None] = loop.create_future()

    def ring() -> None:
        if not over.done():
            over.set_result(None)

    alarm = timer.call_later(timeout_ms, ring)
    try:
        await asyncio.wait((task, over), return_when=asyncio.FIRST_COMPLETED)
    finally:
        alarm.cancel()
    if task.done():
        return task.result()
    _left_behind.add(task)
    task.add_done_callback(_forget)
    raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, f"not done within {timeout_ms} ms; it goes on")


async def translated(work: Awaitable[T]) -> T:
    """What `work` returns; a failure of the metadata is a KafkaError."""
    try:
        return await work
    except StoreFullError as error:
        logger.error("the metadata refused a change: %s", error)
        raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"the metadata could not be changed: {error}") from error
    except SessionExpiredError as error:
        logger.warning("a change was not made: %s", error)
        raise KafkaError(ErrorCode.NOT_CONTROLLER, f"this broker has lost its session: {error}") from error
    except ConnectionLostError as error:
        logger.warning("a change may have been made or not: %s", error)
        raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, f"the change may have been made or not: {error}") from error
    except (MetadataError, StoreUnusableError) as error:
        logger.exception("the metadata refused a change")
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"the metadata could not be changed: {error}") from error


def _forget(task: asyncio.Future[Any]) -> None:
    _left_behind.discard(task)
    if not task.cancelled() and task.exception() is not None:
        logger.error("what a client did not wait for has failed: %s", task.exception())
