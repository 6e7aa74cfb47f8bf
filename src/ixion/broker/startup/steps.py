"""The 27 steps in which a broker starts, by name and in order. They are in the three files beside this one.

A step leaves its part in `Parts` and, if the part must be stopped, an entry in `undo`. A start that fails and a stop
both go through that list from its end.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable
from typing import Final

from ixion.broker.log.lock import DirectoryLockedError
from ixion.broker.metadata.errors import MetadataError, StoreUnusableError
from ixion.broker.startup import steps_identity as identity
from ixion.broker.startup import steps_service as service
from ixion.broker.startup import steps_storage as storage
from ixion.broker.startup.errors import StartupError
from ixion.broker.startup.parts import Parts

logger = logging.getLogger(__name__)

Step = Callable[[Parts], Awaitable[None]]

SHOWN: Final = 3  # slowest steps in the log line of a start

STEPS: Final[tuple[Step, ...]] = (
    identity.base_nodes,
    identity.cluster_id,
    identity.load_meta_properties,
    identity.cluster_check,
    identity.broker_id,
    identity.dynamic_config,
    identity.scheduler,
    identity.quotas,
    storage.log_manager,
    storage.metadata_cache,
    storage.credentials,
    storage.socket_server,
    storage.replica_manager,
    storage.registration,
    storage.write_meta_properties,
    storage.delegation_tokens,
    service.controller,
    service.internal_topics,
    service.group_coordinator,
    service.transaction_coordinator,
    service.authorizer,
    service.services,
    service.request_handlers,
    service.partitions_online,
    service.config_manager,
    service.processors,
    service.started,
)


async def run_steps(parts: Parts) -> None:
    """Run every step; one log line names the slowest, and at debug level each step has a line of its own."""
    took_ms: dict[str, float] = {}
    for number, step in enumerate(STEPS, 1):
        begun = time.perf_counter()
        parts.doing = f"step {number} of the start ({step.__name__})"
        try:
            await step(parts)
        except DirectoryLockedError as error:
            raise StartupError(f"{error}; stop that one first") from error
        except MetadataError as error:
            raise StartupError(f"the metadata store failed in step {number} ({step.__name__}): {error}") from error
        except (StoreUnusableError, OSError) as error:
            raise StartupError(f"the disk failed in step {number} ({step.__name__}): {error}") from error
        took_ms[step.__name__] = (time.perf_counter() - begun) * 1e3
        logger.debug("start-up %2d/27 %-24s %6.1f ms", number, step.__name__, took_ms[step.__name__])
    parts.doing = ""
    slowest = sorted(took_ms, key=took_ms.__getitem__, reverse=True)[:SHOWN]
    logger.info(
        "broker %d of cluster %s started in %.1f ms; slowest steps: %s",
        *(parts.node_id, parts.cluster_id, sum(took_ms.values())),
        ", ".join(f"{name} {took_ms[name]:.1f} ms" for name in slowest),
    )
