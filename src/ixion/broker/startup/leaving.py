"""A broker that stops asks the controller to move its leaders away first (ControlledShutdown).

The controller elects other leaders, and takes this broker out of the in-sync replicas, while everything still runs. So
clients and acks=all notice next to nothing. Partitions that no other broker can lead stay here: after
controlled.shutdown.max.retries times controlled.shutdown.retry.backoff.ms the broker stops anyway. Until then it asks
again after each back-off, or sooner if brokers, the controller or partitions have changed. It does not ask again if no
live broker is in sync: when all brokers stop at once, the last one need not wait for the others.

A broker that led partitions then keeps serving until no request has come for `QUIET_S`: its answers name the new
leaders. A client that loses the broker before it knows the new leader may take a second to recover: librdkafka checks
for the leader of such a partition once a second.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final, cast

from ixion.clients.faults import error_code
from ixion.config import cluster_settings as cluster
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.protocol.messages.k07_controlled_shutdown import (
    ControlledShutdownRequest,
    ControlledShutdownResponse,
)
from ixion.language.protocol.registry import ApiKey

if TYPE_CHECKING:
    from ixion.broker.replica.controller_channel import ControllerChannel
    from ixion.broker.startup.parts import Parts
    from ixion.language.model.topic_partition import TopicPartition

logger = logging.getLogger(__name__)

VERSION: Final = 3
LOOK_S: Final = 0.1
QUIET_S: Final = 0.1
SEE_OFF_S: Final = 1.0  # at most


async def hand_over(parts: Parts) -> None:
    """Returns when this broker leads nothing any more, or all retries have failed."""
    parts.leaving = True
    controller, config = parts.to_controller, parts.config.current
    if controller is None or not config[cluster.CONTROLLED_SHUTDOWN_ENABLE]:
        return
    if parts.fetchers is not None:
        parts.fetchers.leave()
    backoff_s = config[cluster.CONTROLLED_SHUTDOWN_RETRY_BACKOFF_MS] / 1_000
    end_s = parts.loop.time() + (config[cluster.CONTROLLED_SHUTDOWN_MAX_RETRIES] - 1) * backoff_s
    led = any(partition.leads for partition in parts.replicas.partitions.values())
    while len(parts.image.brokers) > 1:
        version = parts.image.version
        problem = await _ask(parts, controller)
        if not problem:
            if led and parts.options.owns_process:  # a broker in a test does not wait for clients
                await _see_off(parts)
            return
        left_s = end_s - parts.loop.time()
        logger.warning("leaders are not moved away: %s; %s", problem, "stopping" if left_s <= 0 else "asking again")
        if left_s <= 0:
            return
        await _changed(parts, version, min(backoff_s, left_s))


async def _ask(parts: Parts, controller: ControllerChannel) -> str:
    """Send one ControlledShutdown. Returns the problem; empty if it succeeded."""
    request = ControlledShutdownRequest(broker_id=parts.node_id, broker_epoch=parts.broker_epoch)
    try:
        answer = cast(ControlledShutdownResponse, await controller.ask(ApiKey.CONTROLLED_SHUTDOWN, VERSION, request))
    except KafkaError as error:
        return str(error)
    if answer.error_code != ErrorCode.NONE:
        return f"the controller answers {error_code(answer.error_code).name}"
    left = [(each.topic_name, each.partition_index) for each in answer.remaining_partitions]
    if not any(_can_move(parts, key) for key in left):
        if left:
            logger.warning("%d partitions have no leader from now on: no other broker is in sync", len(left))
        return ""
    return f"{len(left)} partitions have no other leader"


def _can_move(parts: Parts, key: TopicPartition) -> bool:
    known = parts.image.partition(*key)
    brokers = parts.image.brokers
    return known is None or any(broker in brokers for broker in known.isr if broker != parts.node_id)


async def _changed(parts: Parts, version: int, longest_s: float) -> None:
    """Returns when the image has changed since that version, or after `longest_s`."""
    try:
        async with asyncio.timeout(longest_s):
            await asyncio.sleep(LOOK_S)
            while parts.image.version == version:
                await asyncio.sleep(LOOK_S)
    except TimeoutError:
        pass


async def _see_off(parts: Parts) -> None:
    """Returns when clients send nothing for `QUIET_S`, or after `SEE_OFF_S`."""
    end_s = parts.loop.time() + SEE_OFF_S
    before = -1
    while parts.loop.time() < end_s and (heard := parts.server.snapshot().requests) != before:
        before = heard
        await asyncio.sleep(QUIET_S)
