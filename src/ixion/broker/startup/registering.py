"""The registration of this broker, `/brokers/ids/1`: an ephemeral node, whose created zxid is the broker epoch.

The node may exist already. If this session owns it, an earlier attempt succeeded and its answer was lost. If an earlier
session of this broker owns it, that session has expired or was closed, and we delete the node. Otherwise a killed
broker has left it until its session expires, or another broker has this id.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from typing import TYPE_CHECKING, Final

from ixion.broker.apis.features import SUPPORTED
from ixion.broker.metadata import paths
from ixion.broker.metadata.broker_node import Registration, encode_registration
from ixion.broker.metadata.errors import ConnectionLostError, NodeExistsError, NoNodeError
from ixion.broker.metadata.image import BrokerImage
from ixion.broker.metadata.waiting import gone_in_time
from ixion.broker.startup.errors import StartupError
from ixion.config import cluster_settings as cluster
from ixion.config.listeners import Endpoint, listeners

if TYPE_CHECKING:
    from ixion.broker.startup.parts import Parts

logger = logging.getLogger(__name__)

EXPIRY_MS: Final = 4_000  # ZooKeeper checks for expired sessions once a tick, every 2 or 3 s


async def register(parts: Parts, earlier: Collection[int] = ()) -> None:
    """StartupError if another broker has this id. `earlier` has the ids of this broker's earlier sessions."""
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
    """False if the node exists and belongs to a session that is not ours."""
    session = parts.session
    while True:
        try:
            await session.create(path, data, ephemeral=True)
            return True
        except ConnectionLostError:
            continue  # it may exist now
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
        kept_since=None if parts.kept is None else parts.kept.since,
        in_doubt=parts.kept is not None and parts.kept.since is None,
    )


def reachable_name() -> str:
    """The host name to advertise for a listener on all interfaces, if advertised.listeners names none."""
    import socket

    return socket.getfqdn()
