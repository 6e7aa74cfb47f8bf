"""Steps 9 to 16: logs, ports, replicas, and the registration that makes this broker known."""

from __future__ import annotations

import logging
from collections.abc import Awaitable
from typing import Final

from ixion.apis.features import INITIAL, SUPPORTED, UNNAMED
from ixion.broker.adopt import settings_to_adopt
from ixion.broker.errors import StartupError
from ixion.broker.limits import follow_limits, limits_of
from ixion.broker.listeners import listeners_of
from ixion.broker.parts import Parts
from ixion.broker.upkeep import schedule
from ixion.config import cluster_settings as cluster
from ixion.config import network_settings as network
from ixion.config import replica_settings as replica
from ixion.config.listeners import Endpoint, listeners
from ixion.config.log_settings import NUM_RECOVERY_THREADS_PER_DATA_DIR, NUM_REPLICA_ALTER_LOG_DIRS_THREADS
from ixion.config.topic import TopicConfig
from ixion.log.config import LogConfig
from ixion.log.manager import LogManager
from ixion.log.meta_properties import MetaProperties
from ixion.metadata import paths
from ixion.metadata.broker_node import Registration, encode_registration
from ixion.metadata.cluster_node import decode_features, encode_features
from ixion.metadata.config_node import read_config
from ixion.metadata.errors import NodeExistsError, NoNodeError
from ixion.metadata.image import BrokerImage, ClusterImage
from ixion.metadata.waiting import gone_in_time
from ixion.network import BindError, SocketServer
from ixion.network.request import Answer, Request
from ixion.replica.log_settings import log_config
from ixion.replica.manager import ReplicaManager
from ixion.security.credentials import ScramCredentials

logger = logging.getLogger(__name__)

EXPIRY_MS: Final = 4_000  # ZooKeeper looks for expired sessions once a tick, which is 2 or 3 s long


async def log_manager(parts: Parts) -> None:
    """9. Every log of every directory is loaded, and recovered after an unclean stop."""
    loop = parts.loop
    image = parts.image = ClusterImage(cluster_id=parts.cluster_id)
    broken: list[str] = []

    in_tree = {
        name: await read_config(parts.session, "topics", name) for name in await parts.session.children(paths.TOPICS)
    }

    def config_of(topic: str) -> LogConfig:
        known = image.topics.get(topic)
        if known is not None:
            given = known.config
        elif topic in in_tree:
            given = in_tree[topic]
        else:
            given = settings_to_adopt(topic)  # keep every record until the topic is adopted or set aside
        return log_config(parts.config.current, given)

    def went_offline(path: str) -> None:
        broken.append(path)
        loop.call_soon_threadsafe(directory_failed, parts, path)

    parts.logs = logs = LogManager(
        parts.paths,
        clock_ms=parts.clock_ms,
        config_of=config_of,
        files=parts.options.files,
        recovery_threads=parts.config.current[NUM_RECOVERY_THREADS_PER_DATA_DIR],
        on_offline=went_offline,
    )
    # The threads of the scheduler work on the logs. So a stop first interrupts loading and compaction, then joins these
    # threads, and then closes and unlocks the logs. `undo` is walked from its end.
    parts.undo.insert([name for name, _ in parts.undo].index("scheduler"), ("logs", logs.close))
    parts.undo.append(("work on logs", logs.interrupt))
    await loop.run_in_executor(parts.scheduler.workers, logs.load)
    if len(set(broken)) == len(parts.paths):
        raise StartupError(f"every log directory has failed: {', '.join(d.state.reason for d in logs.directories)}")


def directory_failed(parts: Parts, path: str) -> None:
    """The log-directory failure handler, on the loop."""
    if hasattr(parts, "controller"):
        keep = parts.loop.create_task(parts.controller.leaders.directory_failed(path))
        parts.background.add(keep)
        keep.add_done_callback(parts.background.discard)
    if all(directory.state.offline for directory in parts.logs.directories):
        logger.critical("every log directory has failed; the broker stops")
        parts.on_fatal()


async def metadata_cache(parts: Parts) -> None:
    """10. The cluster image, from which requests are answered, with the finalized features."""
    image = parts.image
    try:
        node = await parts.session.get(paths.FEATURES)
        image.features = UNNAMED | decode_features(node.data)
        image.features_epoch = node.stat.version
    except NoNodeError:
        image.features = dict(INITIAL)
        await parts.session.create(paths.FEATURES, encode_features(image.features))


async def credentials(parts: Parts) -> None:
    """11. The SCRAM credentials of users. Delegation tokens are not supported. (Kafka: the credential provider.)"""
    parts.credentials = ScramCredentials()
    users = f"{paths.CONFIG}/users"
    for entity in await parts.session.children(users):
        parts.credentials.take(paths.plain(entity), await read_config(parts.session, "users", entity))
    if parts.config.current[cluster.DELEGATION_TOKEN_SECRET_KEY] is not None:
        raise StartupError("delegation.token.secret.key is set, but delegation tokens are not supported; remove it")


async def socket_server(parts: Parts) -> None:
    """12. The ports are open and connections queue up; nothing is read yet."""
    config = parts.config.current

    def handle(request: Request) -> Answer | Awaitable[Answer]:
        return parts.dispatch.handle(request)

    parts.server = SocketServer(
        listeners_of(config, parts.credentials),
        handle,
        timer=parts.timer,
        stalls=parts.stalls,
        limits=limits_of(config),
        processors=config[network.NUM_NETWORK_THREADS],
        handlers=config[network.NUM_IO_THREADS],
    )
    try:
        parts.server.start_acceptors()
    except BindError as error:
        raise StartupError(str(error)) from error
    parts.undo.append(("socket server", parts.server.stop))
    follow_limits(parts.config, parts.server)


async def replica_manager(parts: Parts) -> None:
    """13. The replicas, their purgatories, and the tasks that recur (`upkeep`)."""
    config = parts.config.current

    def min_isr_of(topic: str) -> int:
        known = parts.image.topics.get(topic)
        given = known.config if known is not None else {}
        return TopicConfig(parts.config.current, given)[replica.MIN_INSYNC_REPLICAS]

    parts.replicas = ReplicaManager(
        parts.node_id,
        parts.logs,
        timer=parts.timer,
        loop=parts.loop,
        workers=parts.scheduler.workers,
        clock_ms=parts.clock_ms,
        min_isr_of=min_isr_of,
        max_lag_ms=config[replica.REPLICA_LAG_TIME_MAX_MS],
        produce_purge=config[network.PRODUCER_PURGATORY_PURGE_INTERVAL_REQUESTS],
        fetch_purge=config[network.FETCH_PURGATORY_PURGE_INTERVAL_REQUESTS],
        delete_purge=config[network.DELETE_RECORDS_PURGATORY_PURGE_INTERVAL_REQUESTS],
        move_threads=config[NUM_REPLICA_ALTER_LOG_DIRS_THREADS] or len(parts.paths),
    )
    parts.undo.append(("replicas", parts.replicas.shutdown))
    parts.undo.append(("moves under way", parts.replicas.moves.wait))
    parts.undo.append(("moves", parts.replicas.moves.cancel_all))
    schedule(parts)


async def registration(parts: Parts) -> None:
    """14. This broker is registered, for as long as its session lives."""
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
    node = Registration(
        endpoints=tuple(endpoints),
        timestamp_ms=parts.clock_ms(),
        rack=config[cluster.BROKER_RACK],
        features=SUPPORTED,
    )
    path = paths.broker(parts.node_id)
    while True:
        try:
            await parts.session.create(path, encode_registration(node), ephemeral=True)
            break
        except NodeExistsError:
            # A broker that was killed stays registered until its session expires.
            patience_ms = config[cluster.ZOOKEEPER_SESSION_TIMEOUT_MS] + EXPIRY_MS if parts.engine is None else 0
            if patience_ms:
                logger.warning("broker %d is registered; waiting for that session to end", parts.node_id)
            if not await gone_in_time(parts.session, path, patience_ms):
                raise StartupError(f"a broker with id {parts.node_id} is running already") from None
    stat = await parts.session.exists(path)
    parts.broker_epoch = -1 if stat is None else stat.created_zxid
    parts.image.brokers[parts.node_id] = BrokerImage(
        broker_id=parts.node_id,
        epoch=parts.broker_epoch,
        endpoints={endpoint.listener: (endpoint.host, endpoint.port) for endpoint in endpoints},
        rack=node.rack,
    )


async def write_meta_properties(parts: Parts) -> None:
    """15. meta.properties is written into every log directory that has none."""
    meta = MetaProperties(version=0, cluster_id=parts.cluster_id, node_id=parts.node_id)
    for directory in parts.logs.directories:
        known = parts.found.get(directory.path)
        if known is None or known.node_id is None or known.cluster_id is None:
            directory.set_meta_properties(meta)


async def delegation_tokens(parts: Parts) -> None:
    """16. Delegation tokens are not supported: warn if the tree holds any. (Kafka: the token manager.)"""
    if await parts.session.exists(paths.DELEGATION_TOKENS) is not None:
        logger.warning("the tree holds delegation tokens; they are not served")


def reachable_name() -> str:
    """The name to advertise for a listener on every interface, if advertised.listeners gives none."""
    import socket

    return socket.getfqdn()
