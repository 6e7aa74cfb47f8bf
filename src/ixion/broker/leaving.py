"""A broker that stops asks the controller to move its leaders away first (ControlledShutdown).

The controller elects other leaders, and takes this broker out of the in-sync replicas, while everything still runs: so
clients and acks=all notice next to nothing. Partitions that no other broker can lead stay here; after
controlled.shutdown.max.retries attempts the broker stops all the same.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final, cast

from ixion.clients.faults import error_code
from ixion.config import cluster_settings as cluster
from ixion.model.errors import ErrorCode, KafkaError
from ixion.protocol.messages.k07_controlled_shutdown import ControlledShutdownRequest, ControlledShutdownResponse
from ixion.protocol.registry import ApiKey

if TYPE_CHECKING:
    from ixion.broker.parts import Parts
    from ixion.replica.controller_channel import ControllerChannel

logger = logging.getLogger(__name__)

VERSION: Final = 3


async def hand_over(parts: Parts) -> None:
    """Returns when this broker leads nothing any more, or has asked often enough."""
    parts.leaving = True
    controller, config = parts.to_controller, parts.config.current
    if controller is None or not config[cluster.CONTROLLED_SHUTDOWN_ENABLE] or len(parts.image.brokers) < 2:
        return
    if parts.fetchers is not None:
        parts.fetchers.leave()
    attempts = config[cluster.CONTROLLED_SHUTDOWN_MAX_RETRIES]
    for attempt in range(1, attempts + 1):
        problem = await _ask(parts, controller)
        if not problem:
            return
        last = attempt == attempts
        logger.warning("leaders are not moved away: %s; %s", problem, "stopping" if last else "asking again")
        if not last:
            await asyncio.sleep(config[cluster.CONTROLLED_SHUTDOWN_RETRY_BACKOFF_MS] / 1_000)


async def _ask(parts: Parts, controller: ControllerChannel) -> str:
    """What kept the controller from it; empty if it is done."""
    request = ControlledShutdownRequest(broker_id=parts.node_id, broker_epoch=parts.broker_epoch)
    try:
        answer = cast(ControlledShutdownResponse, await controller.ask(ApiKey.CONTROLLED_SHUTDOWN, VERSION, request))
    except KafkaError as error:
        return str(error)
    if answer.error_code != ErrorCode.NONE:
        return f"the controller answers {error_code(answer.error_code).name}"
    left = answer.remaining_partitions
    return f"{len(left)} partitions have no other leader" if left else ""
