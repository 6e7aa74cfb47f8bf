"""The registration of this broker, `/brokers/ids/1`: an ephemeral node, whose created zxid is the broker epoch.

It may be there already. If its owner is this session, an earlier attempt succeeded and its answer was lost. If it is a
session that this broker had before, that one has expired or was given up, and its node is about to go: it is deleted.
Else a broker that was killed has left it, which goes when its session expires, or another broker has this id.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from typing import TYPE_CHECKING, Final

from ixion.apis.features import SUPPORTED
from ixion.broker.errors import StartupError
from ixion.config import cluster_settings as cluster
from ixion.config.listeners import Endpoint, listeners
from ixion.metadata import paths
from ixion.metadata.broker_node import Registration, encode_registration
from ixion.metadata.errors import ConnectionLostError, NodeExistsError, NoNodeError
from ixion.metadata.image import BrokerImage
from ixion.metadata.waiting import gone_in_time

if TYPE_CHECKING:
    from ixion.broker.parts import Parts

logger = logging.getLogger(__name__)

EXPIRY_MS: Final = 4_000  # ZooKeeper looks for expired sessions once a tick, which is 2 or 3 s long


async def register(parts: Parts, earlier: Collection[int] = ()) -> None:
    """StartupError if another broker has this id. `earlier`: the ids of the sessions that this broker had before."""
    node = registration_of(parts)
    path = paths.broker(parts.node_id)
    while not await _create(parts, path, encode_registration(node), earlier):
        # A broker that was killed stays registered until its session expires.
        timeout_ms = parts.config.current[cluster.ZOOKEEPER_SESSION_TIMEOUT_MS]
        patience_ms = timeout_ms + EXPIRY_MS if parts.engine is None else 0
        if patience_ms:
            logger.warning("broker %d is registered; waiting for that session to end", parts.node_id)
        if not await gone_in_time(parts.session, path, patience_ms):
            raise StartupError(f"a broker with id {parts.node_id} is running already") from None
    stat = await parts.session.exists(path)
    parts.broker_epoch = -1 if stat is None else stat.created_zxid
    parts.registered_ms = parts.clock_ms()
    parts.image.brokers[parts.node_id] = BrokerImage(
        broker_id=parts.node_id,
        epoch=parts.broker_epoch,
        endpoints={endpoint.listener: (endpoint.host, endpoint.port) for endpoint in node.endpoints},
        rack=node.rack,
    )


async def _create(parts: Parts, path: str, data: bytes, earlier: Collection[int]) -> bool:
    """False if the node is there and belongs to a session that we know nothing of."""
    session = parts.session
    while True:
        try:
            await session.create(path, data, ephemeral=True)
            return True
        except ConnectionLostError:
            continue  # it may be there now
        except NodeExistsError:
            stat = await session.exists(path)
        if stat is None:
            continue
        if stat.owner == session.session_id:
            return True
        if stat.owner not in earlier:
            return False
        try:
            await session.delete(path)
        except (NoNodeError, ConnectionLostError):
            continue


def registration_of(parts: Parts) -> Registration:
    config = parts.config.current
    advertised = {endpoint.listener: endpoint for endpoint in listeners(config).advertised}
    bound = {endpoint.listener: endpoint for endpoint in listeners(config).bound}
    endpoints = []
    for endpoint in parts.server.endpoints:
        wanted = advertised.get(endpoint.name)
        if wanted is None:
            continue  # not advertised, such as the listener of the control plane
        port = wanted.port or endpoint.port
        host = wanted.host or reachable_name()
        endpoints.append(Endpoint(endpoint.name, host, port, bound[endpoint.name].protocol))
    return Registration(
        endpoints=tuple(endpoints),
        timestamp_ms=parts.clock_ms(),
        rack=config[cluster.BROKER_RACK],
        features=SUPPORTED,
    )


def reachable_name() -> str:
    """The name to advertise for a listener on every interface, if advertised.listeners gives none."""
    import socket

    return socket.getfqdn()
