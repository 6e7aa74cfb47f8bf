"""The 27 steps in which a broker starts, by name and in order. `STEPS` at the end is the list.

Each leaves one part in `Parts` and, where something has to be taken down again, a line in `undo`; a start that fails
and a stop both go through that list from its end. Steps about what is not there yet (tokens, credentials,
authorisation) look whether somebody relies on it, and refuse to start rather than leave a door open.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Awaitable, Callable
from typing import Final

from ixion.apis.dispatch import Dispatch
from ixion.apis.features import INITIAL, SUPPORTED
from ixion.apis.services import Services
from ixion.broker.adopt import adopt_logs
from ixion.broker.config_changes import ConfigChanges
from ixion.broker.errors import (
    InconsistentBrokerIdError,
    InconsistentBrokerMetadataError,
    InconsistentClusterIdError,
    StartupError,
)
from ixion.broker.internal_topics import make_internal_topics
from ixion.broker.late_groups import LateGroups
from ixion.broker.limits import follow_limits, limits_of, listeners_of
from ixion.broker.pages import show_pages
from ixion.broker.parts import Parts
from ixion.broker.preflight import check_authorizer
from ixion.broker.scheduler import Scheduler
from ixion.broker.upkeep import keep_session, schedule
from ixion.config import cluster_settings as cluster
from ixion.config import network_settings as network
from ixion.config import replica_settings as replica
from ixion.config.dynamic import Level
from ixion.config.listeners import Endpoint, listeners
from ixion.config.log_settings import NUM_RECOVERY_THREADS_PER_DATA_DIR, NUM_REPLICA_ALTER_LOG_DIRS_THREADS
from ixion.config.topic import TopicConfig
from ixion.controller.controller import Controller
from ixion.controller.topics import read_config
from ixion.coordinators.txn.build import transaction_coordinator as make_transactions
from ixion.log.config import LogConfig
from ixion.log.corrupt import CorruptFileError
from ixion.log.lock import DirectoryLockedError
from ixion.log.manager import LogManager
from ixion.log.meta_properties import FILE_NAME as META_PROPERTIES
from ixion.log.meta_properties import MetaProperties, read_meta_properties
from ixion.metadata import paths
from ixion.metadata.broker_node import Registration, encode_registration
from ixion.metadata.cluster_node import decode_cluster_id, decode_features, encode_cluster_id, encode_features
from ixion.metadata.ensure import ensure
from ixion.metadata.errors import NodeExistsError, NoNodeError
from ixion.metadata.image import BrokerImage, ClusterImage
from ixion.model.ids import id_text, new_id
from ixion.network import BindError, SocketServer
from ixion.network.request import Answer, Request
from ixion.replica.internal_topic import TRANSACTION_STATE
from ixion.replica.log_settings import log_config
from ixion.replica.manager import ReplicaManager
from ixion.timer.collector import relax_collector

logger = logging.getLogger(__name__)

Step = Callable[[Parts], Awaitable[None]]


async def base_nodes(parts: Parts) -> None:
    """1. The tree has the nodes that everything else hangs on."""
    # Until there was a controller nothing can have been made but what is found on disk; see `adopt`.
    parts.fresh = parts.session.exists(paths.CONTROLLER_EPOCH) is None
    if any(parts.session.exists(path) is None for path in paths.BASE):
        ensure(parts.session, paths.BASE)


async def cluster_id(parts: Parts) -> None:
    """2. The id of the cluster, drawn by whoever starts first."""
    session = parts.session
    try:
        parts.cluster_id = decode_cluster_id(session.get(paths.CLUSTER_ID).data)
    except NoNodeError:
        # A directory that another Kafka has written keeps its cluster: with a new tree nobody contradicts it.
        known = {found.cluster_id for found in read_all_meta(parts.paths).values() if found is not None}
        parts.cluster_id = next(iter(known - {None}), None) or id_text(new_id())
        ensure(session, [os.path.dirname(paths.CLUSTER_ID)])
        session.create(paths.CLUSTER_ID, encode_cluster_id(parts.cluster_id))


async def directory_papers(parts: Parts) -> None:
    """3. meta.properties of every log directory; all must be of one broker and one cluster."""
    parts.found = read_all_meta(parts.paths)
    papers = {(found.cluster_id, found.node_id) for found in parts.found.values() if found is not None}
    if len(papers) > 1:
        lines = "; ".join(
            f"{path}: cluster {found.cluster_id}, broker {found.node_id}"
            for path, found in parts.found.items()
            if found is not None
        )
        raise InconsistentBrokerMetadataError(f"the log directories belong to different brokers: {lines}")


async def cluster_check(parts: Parts) -> None:
    """4. The directories are of this cluster."""
    for path, found in parts.found.items():
        if found is not None and found.cluster_id not in (None, parts.cluster_id):
            raise InconsistentClusterIdError(
                f"{path} belongs to cluster {found.cluster_id}, the metadata is of cluster {parts.cluster_id};"
                " one of the two is in the wrong place"
            )


async def broker_id(parts: Parts) -> None:
    """5. The id given, or the one the directories know, or a new one above reserved.broker.max.id."""
    config = parts.config.current
    given = config[cluster.BROKER_ID] if config[cluster.BROKER_ID] >= 0 else config[cluster.NODE_ID]
    stored = next((found.node_id for found in parts.found.values() if found and found.node_id is not None), None)
    if given >= 0 and stored is not None and given != stored:
        raise InconsistentBrokerIdError(
            f"broker.id is {given}, but the log directories are those of broker {stored}; use that id,"
            " or other directories"
        )
    if given >= 0:
        parts.node_id = given
    elif stored is not None:
        parts.node_id = stored
    else:
        sequence = parts.session.set(paths.BROKER_SEQUENCE, b"").version
        parts.node_id = sequence + config[cluster.RESERVED_BROKER_MAX_ID]


async def dynamic_config(parts: Parts) -> None:
    """6. What was set while brokers ran, for all of them and then for this one, over what was given at the start."""
    for level, entity in ((Level.ALL_BROKERS, paths.DEFAULT_ENTITY), (Level.THIS_BROKER, str(parts.node_id))):
        stored = read_config(parts.session, "brokers", entity)
        for refused in parts.config.restore(level, stored) if stored else ():
            logger.error("a stored setting is left out: %s", refused)


async def scheduler(parts: Parts) -> None:
    """7. Threads for what blocks, and the wheel that says when."""
    parts.scheduler = Scheduler(parts.timer, parts.config.current[cluster.BACKGROUND_THREADS])
    parts.undo.append(("scheduler", parts.scheduler.stop))
    keep_session(parts)


async def quotas(parts: Parts) -> None:
    """8. Quotas of clients and users. They are not enforced yet, so whoever has set one is told."""
    for kind in ("clients", "users", "ips"):
        for entity in parts.session.children(f"{paths.CONFIG}/{kind}"):
            logger.warning("a quota is set for %s/%s, but quotas are not enforced", kind, entity)


async def log_manager(parts: Parts) -> None:
    """9. Every log of every directory, recovered where the last stop was not a clean one."""
    loop = parts.loop
    image = parts.image = ClusterImage(cluster_id=parts.cluster_id)
    broken: list[str] = []

    def config_of(topic: str) -> LogConfig:
        known = image.topics.get(topic)
        given = known.config if known is not None else read_config(parts.session, "topics", topic)
        return log_config(parts.config.current, given)

    def went_offline(path: str) -> None:
        broken.append(path)
        loop.call_soon_threadsafe(directory_failed, parts, path)

    parts.logs = logs = LogManager(
        parts.paths,
        clock_ms=parts.clock_ms,
        config_of=config_of,
        recovery_threads=parts.config.current[NUM_RECOVERY_THREADS_PER_DATA_DIR],
        on_offline=went_offline,
    )
    parts.undo.append(("logs", logs.close))
    await loop.run_in_executor(parts.scheduler.workers, logs.load)
    if len(set(broken)) == len(parts.paths):
        raise StartupError(f"every log directory has failed: {', '.join(d.home.reason for d in logs.directories)}")


def directory_failed(parts: Parts, path: str) -> None:
    """The log-directory failure handler, on the loop."""
    if hasattr(parts, "controller"):
        keep = parts.loop.create_task(parts.controller.directory_failed(path))
        parts.background.add(keep)
        keep.add_done_callback(parts.background.discard)
    if all(directory.home.offline for directory in parts.logs.directories):
        logger.critical("every log directory has failed; the broker stops")
        parts.on_fatal()


async def metadata_cache(parts: Parts) -> None:
    """10. The picture of the cluster from which requests are answered, with its features."""
    image = parts.image
    try:
        node = parts.session.get(paths.FEATURES)
        image.features = decode_features(node.data)
        image.features_epoch = node.stat.version
    except NoNodeError:
        image.features = dict(INITIAL)
        parts.session.create(paths.FEATURES, encode_features(image.features))


async def credentials(parts: Parts) -> None:
    """11. Tokens and credentials. There are none yet; the listeners are all PLAINTEXT, or the start was refused."""
    if parts.config.current[cluster.DELEGATION_TOKEN_SECRET_KEY] is not None:
        raise StartupError("delegation.token.secret.key is set, but delegation tokens are not supported; remove it")


async def socket_server(parts: Parts) -> None:
    """12. The ports are open and connections queue up; nothing is read yet."""
    config = parts.config.current

    def handle(request: Request) -> Answer | Awaitable[Answer]:
        return parts.dispatch.handle(request)

    parts.server = SocketServer(
        listeners_of(config),
        handle,
        timer=parts.timer,
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
    """13. The replicas and their purgatories, and what is done for them from time to time."""
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
    schedule(parts)


async def registration(parts: Parts) -> None:
    """14. This broker is registered, for as long as its session lives."""
    config = parts.config.current
    told = {endpoint.listener: endpoint for endpoint in listeners(config).advertised}
    bound = {endpoint.listener: endpoint for endpoint in listeners(config).bound}
    endpoints = []
    for endpoint in parts.server.endpoints:
        wanted = told.get(endpoint.name)
        if wanted is None:
            continue  # not advertised: the control plane's, for instance
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
    try:
        parts.session.create(path, encode_registration(node), ephemeral=True)
    except NodeExistsError:
        raise StartupError(f"a broker with id {parts.node_id} is running already") from None
    stat = parts.session.exists(path)
    parts.broker_epoch = -1 if stat is None else stat.created_zxid
    parts.image.brokers[parts.node_id] = BrokerImage(
        broker_id=parts.node_id,
        epoch=parts.broker_epoch,
        endpoints={endpoint.listener: (endpoint.host, endpoint.port) for endpoint in endpoints},
        rack=node.rack,
    )


async def write_papers(parts: Parts) -> None:
    """15. The directories that had no meta.properties get theirs."""
    meta = MetaProperties(version=0, cluster_id=parts.cluster_id, node_id=parts.node_id)
    for directory in parts.logs.directories:
        known = parts.found.get(directory.path)
        if known is None or known.node_id is None or known.cluster_id is None:
            directory.set_meta_properties(meta)


async def token_manager(parts: Parts) -> None:
    """16. Delegation tokens: none, see step 11; nodes that another broker left are not served."""
    if parts.session.exists(paths.DELEGATION_TOKENS) is not None:
        logger.warning("the tree holds delegation tokens; they are not served")


async def controller(parts: Parts) -> None:
    """17. The controller is elected; topics get their leaders."""
    parts.controller = Controller(
        parts.node_id, parts.session, parts.image, parts.replicas, parts.logs, parts.config, parts.clock_ms
    )
    parts.undo.append(("controller", parts.controller.stop))
    if parts.fresh and parts.logs.logs:
        await parts.controller.in_thread(lambda: adopt_logs(parts.session, parts.logs, parts.node_id))


async def admin_manager(parts: Parts) -> None:
    """18. Internal topics, to be made when somebody first needs them."""
    parts.internal_topics = make_internal_topics(parts)


async def group_coordinator(parts: Parts) -> None:
    """19. Groups, wherever their part of __consumer_offsets is led here, and the look for old offsets."""
    groups = parts.groups = LateGroups(parts)
    parts.replicas.on_leadership.append(groups.follow)
    parts.controller.on_topics_deleted.append(groups.on_topics_deleted)
    parts.undo.append(("group coordinator", groups.stop))


async def transaction_coordinator(parts: Parts) -> None:
    """20. Transactions, wherever their part of __transaction_state is led here, and the look for those out of time."""
    parts.transactions = make_transactions(
        node_id=parts.node_id,
        log=parts.internal_topics[TRANSACTION_STATE],
        session=parts.session,
        image=parts.image,
        replicas=parts.replicas,
        offsets_decided=parts.groups.on_transaction_marker,
        config=parts.config,
        timer=parts.timer,
        clock_ms=parts.clock_ms,
        loop=parts.loop,
    )
    parts.undo.append(("transaction coordinator", parts.transactions.stop))
    parts.transactions.start()


async def authorizer(parts: Parts) -> None:
    """21. Who may do what: everybody, everything. Looked at again, now with what was set while brokers ran."""
    check_authorizer(parts.config.current)


async def fetch_manager(parts: Parts) -> None:
    """22. What handlers share; the fetch sessions live in the handler of Fetch, which is made with the first fetch."""
    parts.services = Services(
        node_id=parts.node_id,
        cluster_id=parts.cluster_id,
        config=parts.config,
        image=parts.image,
        replicas=parts.replicas,
        controller=parts.controller,
        timer=parts.timer,
        internal_topics=parts.internal_topics,
        make_groups=parts.groups.get,
        transactions=parts.transactions,
        clock_ms=parts.clock_ms,
        loop=parts.loop,
    )


async def request_handlers(parts: Parts) -> None:
    """23. Requests of both planes find their handlers."""
    parts.dispatch = Dispatch(parts.services)


async def handler_pool(parts: Parts) -> None:
    """24. Partitions go online: whoever asks from now on is answered from the logs."""
    unclean = any(not directory.was_clean for directory in parts.logs.directories)
    await parts.controller.start(unclean and not parts.fresh)
    parts.replicas.moves.resume(parts.replicas.partitions)


async def config_manager(parts: Parts) -> None:
    """25. Changes of settings are followed, whoever makes them."""
    changes = ConfigChanges(parts)
    parts.controller.on_config_change = changes.apply
    changes.start()


async def processors(parts: Parts) -> None:
    """26. Connections are read."""
    parts.server.start_processors()


async def started(parts: Parts) -> None:
    """27. Metrics are shown; all that was made for the start is left alone by the garbage collector from here on."""
    if parts.web is not None:
        await show_pages(parts, parts.web)
    if parts.options.owns_process:
        relax_collector()
    logger.info("broker %d of cluster %s has started", parts.node_id, parts.cluster_id)


STEPS: Final[tuple[Step, ...]] = (
    base_nodes,
    cluster_id,
    directory_papers,
    cluster_check,
    broker_id,
    dynamic_config,
    scheduler,
    quotas,
    log_manager,
    metadata_cache,
    credentials,
    socket_server,
    replica_manager,
    registration,
    write_papers,
    token_manager,
    controller,
    admin_manager,
    group_coordinator,
    transaction_coordinator,
    authorizer,
    fetch_manager,
    request_handlers,
    handler_pool,
    config_manager,
    processors,
    started,
)


async def run_steps(parts: Parts) -> None:
    for number, step in enumerate(STEPS, 1):
        begun = time.perf_counter()
        try:
            await step(parts)
        except DirectoryLockedError as error:
            raise StartupError(f"{error}; stop that one first") from error
        logger.info("start-up %2d/27 %-24s %6.1f ms", number, step.__name__, (time.perf_counter() - begun) * 1e3)


def read_all_meta(directories: list[str]) -> dict[str, MetaProperties | None]:
    found: dict[str, MetaProperties | None] = {}
    for path in directories:
        try:
            found[path] = read_meta_properties(os.path.join(path, META_PROPERTIES))
        except CorruptFileError as error:
            raise InconsistentBrokerMetadataError(f"{error}; restore the file, or remove it if it is lost") from error
    return found


def reachable_name() -> str:
    """What to advertise for a listener on every interface, when nobody said."""
    import socket

    return socket.getfqdn()
