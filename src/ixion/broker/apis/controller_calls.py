"""Timeouts and errors of requests that wait for the controller.

After the request's timeout the client gets REQUEST_TIMED_OUT; the controller's work continues, and the client can look
for the result later. With a timeout of 0 or less the response waits until the work is done. (Kafka responds
REQUEST_TIMED_OUT at once, which librdkafka takes for success.)

If the metadata store fails or refuses a change, the response has an error code; the connection stays open. If this
broker loses its ZooKeeper connection or session, clients get a code that they retry, and the log gets one line.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Coroutine
from typing import Any, TypeVar

from ixion.broker.metadata.errors import (
    ConnectionLostError,
    MetadataError,
    SessionExpiredError,
    StoreFullError,
    StoreUnusableError,
)
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.timer.timer import Timer

logger = logging.getLogger(__name__)

T = TypeVar("T")

_left_behind: set[asyncio.Future[Any]] = set()  # strong references: the loop keeps only weak ones


async def in_time(timer: Timer, timeout_ms: int, work: Coroutine[Any, Any, T]) -> T:
    """The result of `work`; KafkaError REQUEST_TIMED_OUT if that takes too long."""
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
    raise KafkaError(ErrorCode.REQUEST_TIMED_OUT, f"not done within {timeout_ms} ms; the work continues")


async def translated(work: Awaitable[T]) -> T:
    """The result of `work`; an error of the metadata becomes a KafkaError."""
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
        logger.error("work that went on after its request timed out has failed: %s", task.exception())
