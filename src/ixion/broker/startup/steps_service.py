"""Steps 17 to 27: controller, coordinators, handlers; then clients are served."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

from ixion.broker.apis.dispatch import Dispatch
from ixion.broker.apis.services import Services
from ixion.broker.controller.controller import Controller
from ixion.broker.controller.own_broker import OwnBroker
from ixion.broker.metadata.content import CorruptNodeError
from ixion.broker.replica.internal_topic import GROUP_OFFSETS, SHARE_STATE, TRANSACTION_STATE
from ixion.broker.startup.config_changes import ConfigChanges
from ixion.broker.startup.errors import StartupError
from ixion.broker.startup.internal_topics import make_internal_topics
from ixion.broker.startup.late_groups import LateGroups
from ixion.broker.startup.late_share_leaders import LateShareLeaders
from ixion.broker.startup.late_shares import LateShares
from ixion.broker.startup.late_transactions import LateTransactions
from ixion.broker.startup.own_disks import OwnDisks, propose_isr_to
from ixion.broker.startup.pages import show_pages
from ixion.broker.startup.parts import Parts
from ixion.broker.startup.placement import choose_placement
from ixion.broker.startup.preflight import check_authorizer
from ixion.broker.startup.topic_creation import create_topics
from ixion.config import cluster_settings as cluster
from ixion.config.cluster_settings import AUTHORIZER_CLASS_NAME
from ixion.config.listeners import listeners
from ixion.config.security_settings import ALLOW_EVERYONE_IF_NO_ACL_FOUND, SUPER_USERS
from ixion.timer.collector import relax_collector

if TYPE_CHECKING:
    from ixion.broker.startup.renewing import Renewal


async def controller(parts: Parts) -> None:
    """17. The controller is created, and topics found on disk under a new tree are adopted. Step 24 elects it."""
    if parts.engine is None:
        make_cluster_controller(parts)
    else:
        disks = OwnDisks(parts.replicas, parts.logs)
        own = OwnBroker(parts.node_id, parts.image, parts.control, disks)
        sole = parts.controller = Controller(
            parts.session, parts.image, own, parts.config, parts.clock_ms, parts.options.make_pool
        )
        propose_isr_to(parts.replicas, sole.leaders.change_isr)
        parts.undo.append(("controller", sole.stop))
    if parts.fresh and (parts.logs.logs or parts.logs.unreadable):
        from ixion.broker.startup.adopt import adopt_logs

        refuse_to_adopt_half(parts)
        await adopt_logs(parts.session, parts.logs, parts.node_id)


def make_cluster_controller(parts: Parts) -> None:
    """On ZooKeeper there may be other brokers; only then is their code imported."""
    from ixion.broker.controller.cluster.channels import carriers
    from ixion.broker.controller.cluster.controller import ClusterController
    from ixion.broker.startup.peers import connect_to

    config = parts.config.current
    known = listeners(config)
    door = known.control_plane or known.inter_broker  # the listener by which the controller reaches a broker
    timeout_ms = config[cluster.CONTROLLER_SOCKET_TIMEOUT_MS]
    made = parts.controller = ClusterController(
        parts.node_id,
        parts.session,
        parts.image,
        parts.config,
        parts.clock_ms,
        carrier_to=carriers(parts.node_id, parts.control, door, timeout_ms, connect_to(parts.config, door)),
        listener=known.inter_broker,
    )
    parts.undo.append(("cluster controller", made.stop))
    if config[cluster.AUTO_LEADER_REBALANCE_ENABLE]:
        interval_ms = config[cluster.LEADER_IMBALANCE_CHECK_INTERVAL_SECONDS] * 1_000
        parts.scheduler.every_on_loop("leader-balance", interval_ms, made.balance_soon)


def refuse_to_adopt_half(parts: Parts) -> None:
    """Refuse to adopt if a log directory cannot be read: its topics would be missing from the tree for good."""
    for directory in parts.logs.directories:
        if directory.state.offline:
            raise StartupError(
                f"topics found on disk cannot be adopted while a log directory is offline: {directory.state.reason}"
            )


async def internal_topics(parts: Parts) -> None:
    """18. Internal topics, to be created on first use. (Kafka: the admin manager; here the controller does it.)"""
    if parts.engine is not None:
        await choose_placement(parts)  # now: topics that step 17 adopts have groups, too
    parts.internal_topics = make_internal_topics(parts)


async def group_coordinator(parts: Parts) -> None:
    """19. The group coordinator, for the partitions of __consumer_offsets that this broker leads."""
    groups = parts.groups = LateGroups(parts)
    parts.replicas.on_leadership.append(groups.follow)
    parts.control.on_deleted.append(groups.on_topics_deleted)
    parts.control.prepare_to_lead.append(groups.prepare_to_lead)
    parts.control.on_deleted.append(parts.schedules.topics_deleted)
    parts.undo.append(("group coordinator", groups.stop))
    import_if_kept(parts, GROUP_OFFSETS, groups.import_code)


async def transaction_coordinator(parts: Parts) -> None:
    """20. The transaction coordinator, for the partitions of __transaction_state that this broker leads, and the share
    coordinator, for those of __share_group_state."""
    transactions = parts.transactions = LateTransactions(parts)
    parts.replicas.on_leadership.append(transactions.follow)
    parts.control.prepare_to_lead.append(transactions.prepare_to_lead)
    parts.undo.append(("transaction coordinator", transactions.stop))
    import_if_kept(parts, TRANSACTION_STATE, transactions.import_code)
    shares = parts.shares = LateShares(parts)
    parts.replicas.on_leadership.append(shares.follow)
    parts.control.on_deleted.append(shares.on_topics_deleted)
    parts.control.prepare_to_lead.append(shares.prepare_to_lead)
    parts.undo.append(("share coordinator", shares.stop))
    import_if_kept(parts, SHARE_STATE, shares.import_code)
    share_leaders = parts.share_leaders = LateShareLeaders(parts)
    parts.replicas.on_leadership.append(share_leaders.follow)
    parts.undo.append(("share partitions", share_leaders.stop))


def import_if_kept(parts: Parts, topic: str, import_code: Callable[[], None]) -> None:
    """Import the code of a coordinator on a worker thread if this broker has a replica of its topic.

    Such a broker gets requests for the coordinator right after its start, even if another one leads now: it may have
    led before, and its clients do not know yet. A request that imports the code holds up the event loop.
    """
    if any(name == topic for name, _ in parts.logs.logs):
        parts.loop.run_in_executor(parts.scheduler.workers, import_code)


async def authorizer(parts: Parts) -> None:
    """21. The authorizer, with the rules of the tree, if authorizer.class.name is set."""
    config = parts.config.current
    if not config[AUTHORIZER_CLASS_NAME]:
        return
    check_authorizer(config)
    from ixion.broker.acl.authorizer import Authorizer, parse_super_users
    from ixion.broker.controller.acls import Acls

    authorizer = parts.authorizer = Authorizer(
        parse_super_users(config[SUPER_USERS]),
        config[ALLOW_EVERYONE_IF_NO_ACL_FOUND],
        lambda: time.monotonic_ns() // 1_000_000,
    )
    parts.acls = Acls(parts.session, authorizer.rules, parts.clock_ms)
    parts.undo.append(("access rules", parts.acls.stop))
    try:
        await parts.acls.start()
    except CorruptNodeError as error:
        raise StartupError(f"access rules in the metadata cannot be read: {error}") from error
    parts.on_new_session.append(parts.acls.resume)


async def services(parts: Parts) -> None:
    """22. What the handlers share. (Kafka: the fetch manager; here the handler of Fetch keeps the fetch sessions.)"""
    parts.services = Services(
        node_id=parts.node_id,
        cluster_id=parts.cluster_id,
        config=parts.config,
        image=parts.image,
        replicas=parts.replicas,
        control=parts.control,
        controller=parts.controller,
        create_topics=lambda wanted: create_topics(parts, wanted),
        timer=parts.timer,
        internal_topics=parts.internal_topics,
        make_groups=parts.groups.get,
        make_transactions=parts.transactions.get,
        make_shares=parts.shares.get,
        make_share_states=parts.shares.router,
        make_share_leaders=parts.share_leaders.get,
        credentials=parts.credentials,
        tokens=parts.token_manager,
        quotas=parts.quotas,
        mutations=parts.mutations,
        address_rates=parts.address_rates,
        authorizer=parts.authorizer,
        acls=parts.acls,
        clock_ms=parts.clock_ms,
        loop=parts.loop,
    )


async def request_handlers(parts: Parts) -> None:
    """23. The dispatch of requests to their handlers, for both planes."""
    parts.dispatch = Dispatch(parts.services)
    parts.quotas.on_change = parts.dispatch.quotas_changed


async def partitions_online(parts: Parts) -> None:
    """24. The controller is elected, and partitions go online. (Kafka: the handler pool; here no threads.)"""
    unclean = any(not directory.was_clean for directory in parts.logs.directories)
    await parts.controller.start(unclean and not parts.fresh)
    if parts.engine is not None:  # in a cluster, roles may still come
        parts.replicas.moves.drop_unused(parts.replicas.partitions)


async def config_manager(parts: Parts) -> None:
    """25. Changes of settings are followed, also those that other brokers make."""
    changes = ConfigChanges(parts)
    parts.controller.configs.on_change = changes.apply
    parts.on_new_session.append(changes.resume)
    await changes.start()


async def processors(parts: Parts) -> None:
    """26. The processors begin to read connections."""
    parts.server.start_processors()


async def started(parts: Parts) -> None:
    """27. Metrics are served; from now on an expired session is replaced; the garbage collector ignores the objects of
    the start."""
    if parts.web is not None:
        await show_pages(parts, parts.web)
    if parts.engine is None:
        parts.renewal = make_renewal(parts)
        parts.undo.append(("renewal of the session", parts.renewal.stop))
    if parts.options.owns_process:
        relax_collector()
    parts.stalls.start_over()


def make_renewal(parts: Parts) -> Renewal:
    from ixion.broker.controller.cluster.controller import ClusterController
    from ixion.broker.startup.renewing import Renewal

    assert isinstance(parts.controller, ClusterController)
    return Renewal(parts, parts.controller, parts.open_session)
