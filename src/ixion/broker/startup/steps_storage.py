"""Steps 9 to 16: logs, ports, replicas, and the registration of this broker."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable
from functools import partial
from typing import TYPE_CHECKING, Final

from ixion.broker.apis.features import INITIAL, UNNAMED
from ixion.broker.log.config import LogConfig, sibling_config
from ixion.broker.log.manager import LogManager
from ixion.broker.log.meta_properties import MetaProperties
from ixion.broker.metadata import paths
from ixion.broker.metadata.cluster_node import decode_features, encode_features
from ixion.broker.metadata.errors import NoNodeError
from ixion.broker.metadata.image import ClusterImage
from ixion.broker.metadata.notification_node import encode_log_dir_event
from ixion.broker.network import BindError, SocketServer
from ixion.broker.network.request import Answer, Request
from ixion.broker.replica.log_settings import LogConfigs
from ixion.broker.replica.manager import ReplicaManager
from ixion.broker.schedules.schedules import Schedules
from ixion.broker.security.credentials import ScramCredentials
from ixion.broker.security.tokens import Tokens
from ixion.broker.startup.errors import StartupError
from ixion.broker.startup.kept_logs import KeptLogs
from ixion.broker.startup.limits import follow_limits, limits_of
from ixion.broker.startup.listeners import listeners_of
from ixion.broker.startup.mechanisms import Logins
from ixion.broker.startup.membership import make_control
from ixion.broker.startup.parts import Parts
from ixion.broker.startup.placement import check_placement, choose_placement
from ixion.broker.startup.recurring_tasks import schedule
from ixion.broker.startup.registering import register
from ixion.broker.startup.stored_settings import stored_settings
from ixion.config import cluster_settings as cluster
from ixion.config import network_settings as network
from ixion.config import replica_settings as replica
from ixion.config.errors import InvalidSettingError
from ixion.config.log_settings import NUM_RECOVERY_THREADS_PER_DATA_DIR, NUM_REPLICA_ALTER_LOG_DIRS_THREADS
from ixion.config.topic import THROTTLED_FOLLOWERS, THROTTLED_LEADERS, TopicConfig
from ixion.language.model.delay_names import is_sibling, topic_of

if TYPE_CHECKING:
    from ixion.broker.schedules.targets import Targets

logger = logging.getLogger(__name__)

KEYS_CHECK_MS: Final = 1_000


async def log_manager(parts: Parts) -> None:
    """9. Every log of every directory is loaded, and recovered after an unclean stop."""
    loop = parts.loop
    image = parts.image = ClusterImage(cluster_id=parts.cluster_id)
    broken: list[str] = []
    configs = LogConfigs()

    for name in await parts.session.children(paths.TOPICS):
        image.early_configs[name] = await stored_settings(parts.session, "topics", name)

    def config_of(topic: str) -> LogConfig:
        if is_sibling(topic):
            return sibling_config(config_of(topic_of(topic, [*image.early_configs, *image.topics])))
        given = image.topic_config(topic)
        if given is None:
            from ixion.broker.startup.adopt import settings_to_adopt

            given = settings_to_adopt(topic)  # keep every record until the topic is adopted or set aside
        return configs.of(parts.config.current, given, topic)

    def went_offline(path: str) -> None:
        broken.append(path)
        if parts.kept is not None:
            parts.kept.directory_failed()
        loop.call_soon_threadsafe(directory_failed, parts, path)

    parts.logs = logs = LogManager(
        parts.paths,
        clock_ms=parts.clock_ms,
        config_of=config_of,
        files=parts.options.files,
        recovery_threads=parts.config.current[NUM_RECOVERY_THREADS_PER_DATA_DIR],
        on_offline=went_offline,
        make_pool=parts.options.make_pool,
    )
    # The threads of the scheduler work on the logs. So a stop first interrupts loading and compaction, then joins these
    # threads, and then closes and unlocks the logs. A stop goes through `undo` from its end.
    parts.undo.insert([name for name, _ in parts.undo].index("scheduler"), ("logs", logs.close))
    parts.undo.append(("work on logs", logs.interrupt))
    if parts.engine is None:
        parts.kept = KeptLogs(logs, parts.options.boot_id())
    await loop.run_in_executor(parts.scheduler.workers, logs.load if parts.kept is None else parts.kept.load)
    if len(set(broken)) == len(parts.paths):
        raise StartupError(f"every log directory has failed: {', '.join(d.state.reason for d in logs.directories)}")


def directory_failed(parts: Parts, path: str) -> None:
    """Handles a failed log directory, on the loop."""
    if hasattr(parts, "controller"):
        alone = parts.engine is not None
        work = parts.sole_controller.leaders.directory_failed(path) if alone else tell_failed(parts, path)
        keep = parts.loop.create_task(work)
        parts.background.add(keep)
        keep.add_done_callback(parts.background.discard)
    if all(directory.state.offline for directory in parts.logs.directories):
        logger.critical("every log directory has failed; the broker stops")
        parts.on_fatal()


async def tell_failed(parts: Parts, path: str) -> None:
    """Take the replicas of the directory offline, and report that to the controller."""
    await parts.control.directory_failed(path)
    await parts.session.create(paths.NEW_LOG_DIR_EVENT, encode_log_dir_event(parts.node_id), sequential=True)


async def metadata_cache(parts: Parts) -> None:
    """10. The cluster image, from which requests are answered, with the finalized features."""
    image = parts.image
    if parts.engine is None:
        # A cluster on ZooKeeper starts without features: Apache Kafka 3.9 could not join it otherwise.
        from ixion.broker.startup.feature_changes import FeatureChanges

        changes = FeatureChanges(parts)
        parts.on_new_session.append(changes.resume)
        await changes.resume(parts.session)
        return
    try:
        node = await parts.session.get(paths.FEATURES)
        image.features = UNNAMED | decode_features(node.data)
        image.features_epoch = node.stat.version
    except NoNodeError:
        image.features = dict(INITIAL)
        await parts.session.create(paths.FEATURES, encode_features(image.features))


async def credentials(parts: Parts) -> None:
    """11. The SCRAM credentials of users, and the cache of delegation tokens. (Kafka: the credential provider.)"""
    parts.credentials = ScramCredentials()
    users = f"{paths.CONFIG}/users"
    for entity in await parts.session.children(users):
        parts.credentials.take(paths.plain(entity), await stored_settings(parts.session, "users", entity))
    config = parts.config.current
    secret = config[cluster.DELEGATION_TOKEN_SECRET_KEY] or config[cluster.DELEGATION_TOKEN_MASTER_KEY]
    parts.tokens = Tokens(secret, parts.clock_ms, partial(parts.loop.run_in_executor, parts.scheduler.workers))


async def socket_server(parts: Parts) -> None:
    """12. The ports are open and connections queue up; nothing is read yet."""
    config = parts.config.current

    def handle(request: Request) -> Answer | Awaitable[Answer]:
        return parts.dispatch.handle(request)

    logins = Logins(credentials=parts.credentials, tokens=parts.tokens)
    try:  # on a thread: OAUTHBEARER may fetch keys from another machine
        found = await parts.loop.run_in_executor(parts.scheduler.workers, listeners_of, config, logins)
    except InvalidSettingError as error:
        raise StartupError(str(error)) from error
    for certificates in logins.certificates:
        parts.config.listen(certificates.change, certificates.check)
    for keys in logins.key_sets:
        parts.scheduler.every("keys-of-oauthbearer", KEYS_CHECK_MS, keys.look)
    parts.server = SocketServer(
        found,
        handle,
        timer=parts.timer,
        stalls=parts.stalls,
        limits=limits_of(config),
        processors=config[network.NUM_NETWORK_THREADS],
        handlers=config[network.NUM_IO_THREADS],
        arrive=parts.address_rates.arrive,
    )
    try:
        parts.server.start_acceptors()
    except BindError as error:
        raise StartupError(str(error)) from error
    parts.undo.append(("socket server", parts.server.stop))
    follow_limits(parts.config, parts.server)


async def replica_manager(parts: Parts) -> None:
    """13. The replicas, their purgatories, and the recurring tasks (`recurring_tasks`)."""
    config = parts.config.current

    def min_isr_of(topic: str) -> int:
        given = parts.image.topic_config(topic)
        if not given:
            return parts.config.current[replica.MIN_INSYNC_REPLICAS]
        return TopicConfig.stored(parts.config.current, given)[replica.MIN_INSYNC_REPLICAS]

    def throttled(topic: str, number: int) -> tuple[bool, bool]:
        given = parts.image.topic_config(topic)
        if not given:
            return False, False  # no throttled replicas, as for nearly all topics
        from ixion.broker.replica.replication_quota import names_replica

        topic_config = TopicConfig.stored(parts.config.current, given)
        leaders, followers = topic_config.own(THROTTLED_LEADERS), topic_config.own(THROTTLED_FOLLOWERS)
        return names_replica(leaders, number, parts.node_id), names_replica(followers, number, parts.node_id)

    parts.replicas = ReplicaManager(
        parts.node_id,
        parts.logs,
        timer=parts.timer,
        loop=parts.loop,
        workers=parts.scheduler.workers,
        clock_ms=parts.clock_ms,
        monotonic_ms=lambda: int(parts.loop.time() * 1_000),
        min_isr_of=min_isr_of,
        throttled=throttled,
        max_lag_ms=config[replica.REPLICA_LAG_TIME_MAX_MS],
        produce_purge=config[network.PRODUCER_PURGATORY_PURGE_INTERVAL_REQUESTS],
        fetch_purge=config[network.FETCH_PURGATORY_PURGE_INTERVAL_REQUESTS],
        delete_purge=config[network.DELETE_RECORDS_PURGATORY_PURGE_INTERVAL_REQUESTS],
        move_threads=config[NUM_REPLICA_ALTER_LOG_DIRS_THREADS] or len(parts.paths),
    )

    def targets() -> Targets:
        from ixion.broker.startup.schedule_targets import schedule_targets  # only schedule topics need it

        return schedule_targets(parts)

    parts.schedules = Schedules(
        parts.replicas,
        parts.logs,
        timer=parts.timer,
        loop=parts.loop,
        workers=parts.scheduler.workers,
        clock_ms=parts.clock_ms,
        monotonic_ms=lambda: time.monotonic_ns() // 1_000_000,
        targets=targets,
    )
    parts.undo.append(("replicas", parts.replicas.shutdown))
    parts.undo.append(("targets of schedule topics", lambda: parts.close_targets and parts.close_targets()))
    parts.undo.append(("delayed records", parts.schedules.stop))
    parts.undo.append(("moves under way", parts.replicas.moves.wait))
    parts.undo.append(("moves", parts.replicas.moves.cancel_all))
    parts.control = make_control(parts)
    schedule(parts)


async def registration(parts: Parts) -> None:
    """14. This broker is registered while its session lives."""
    if parts.engine is None:
        await choose_placement(parts)
    await register(parts)
    if parts.engine is None:
        await check_placement(parts)
    if parts.kept is not None:
        await parts.loop.run_in_executor(parts.scheduler.workers, parts.kept.registered, parts.broker_epoch)


async def write_meta_properties(parts: Parts) -> None:
    """15. meta.properties is written into every log directory that has none."""
    meta = MetaProperties(version=0, cluster_id=parts.cluster_id, node_id=parts.node_id)
    for directory in parts.logs.directories:
        known = parts.found.get(directory.path)
        if known is None or known.node_id is None or known.cluster_id is None:
            directory.set_meta_properties(meta)


async def delegation_tokens(parts: Parts) -> None:
    """16. The token manager, with the delegation tokens of the tree, if delegation.token.secret.key is set."""
    if not parts.tokens.enabled:
        if await parts.session.exists(paths.DELEGATION_TOKENS) is not None:
            logger.warning("the tree has delegation tokens; they are ignored until delegation.token.secret.key is set")
        return
    from ixion.broker.controller.tokens import TokenManager

    config = parts.config.current
    manager = parts.token_manager = TokenManager(
        parts.session,
        parts.tokens,
        parts.clock_ms,
        max_lifetime_ms=config[cluster.DELEGATION_TOKEN_MAX_LIFETIME_MS],
        expiry_time_ms=config[cluster.DELEGATION_TOKEN_EXPIRY_TIME_MS],
    )
    parts.undo.append(("delegation tokens", manager.stop))
    await manager.start()
    parts.on_new_session.append(manager.resume)

    def remove_expired() -> None:
        if parts.image.controller_id == parts.node_id:
            manager.remove_expired_soon()

    interval_ms = config[cluster.DELEGATION_TOKEN_EXPIRY_CHECK_INTERVAL_MS]
    parts.scheduler.every_on_loop("delete-expired-tokens", interval_ms, remove_expired)
