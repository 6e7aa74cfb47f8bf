"""Steps 17 to 27: controller, coordinators, handlers; then clients are let in."""

from __future__ import annotations

from ixion.apis.dispatch import Dispatch
from ixion.apis.services import Services
from ixion.broker.adopt import adopt_logs
from ixion.broker.config_changes import ConfigChanges
from ixion.broker.errors import StartupError
from ixion.broker.internal_topics import make_internal_topics
from ixion.broker.late_groups import LateGroups
from ixion.broker.pages import show_pages
from ixion.broker.parts import Parts
from ixion.broker.preflight import check_authorizer
from ixion.controller.controller import Controller
from ixion.controller.election import OtherControllerError
from ixion.controller.local_broker import LocalBroker
from ixion.coordinators.txn.build import transaction_coordinator as make_transactions
from ixion.replica.internal_topic import TRANSACTION_STATE
from ixion.timer.collector import relax_collector


async def controller(parts: Parts) -> None:
    """17. The controller is made; topics found on disk under a new tree are adopted. It is elected in step 24."""
    local = LocalBroker(parts.node_id, parts.replicas, parts.logs, parts.config)
    parts.controller = Controller(parts.session, parts.image, local, parts.config, parts.clock_ms)
    parts.undo.append(("controller", parts.controller.stop))
    if parts.fresh and (parts.logs.logs or parts.logs.unreadable):
        refuse_to_adopt_half(parts)
        await adopt_logs(parts.session, parts.logs, parts.node_id)


def refuse_to_adopt_half(parts: Parts) -> None:
    """Refuse to adopt if a log directory cannot be read: its topics would be missing from the tree for good."""
    for directory in parts.logs.directories:
        if directory.state.offline:
            raise StartupError(
                f"topics found on disk cannot be adopted while a log directory is offline: {directory.state.reason}"
            )


async def internal_topics(parts: Parts) -> None:
    """18. Internal topics, to be created on first use. (Kafka: the admin manager; here the controller does it.)"""
    parts.internal_topics = make_internal_topics(parts)


async def group_coordinator(parts: Parts) -> None:
    """19. The group coordinator, for the partitions of __consumer_offsets that this broker leads."""
    groups = parts.groups = LateGroups(parts)
    parts.replicas.on_leadership.append(groups.follow)
    parts.controller.topics.on_deleted.append(groups.on_topics_deleted)
    parts.undo.append(("group coordinator", groups.stop))


async def transaction_coordinator(parts: Parts) -> None:
    """20. The transaction coordinator, for the partitions of __transaction_state that this broker leads."""
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
    """21. No authorizer: checked again, now that the dynamic settings are known."""
    check_authorizer(parts.config.current)


async def services(parts: Parts) -> None:
    """22. What the handlers share. (Kafka: the fetch manager; here the handler of Fetch keeps the fetch sessions.)"""
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
        credentials=parts.credentials,
        clock_ms=parts.clock_ms,
        loop=parts.loop,
    )


async def request_handlers(parts: Parts) -> None:
    """23. The dispatch of requests to their handlers, for both planes."""
    parts.dispatch = Dispatch(parts.services)


async def partitions_online(parts: Parts) -> None:
    """24. The controller is elected, and partitions go online. (Kafka: the handler pool; here no threads.)"""
    unclean = any(not directory.was_clean for directory in parts.logs.directories)
    try:
        await parts.controller.start(unclean and not parts.fresh)
    except OtherControllerError as error:
        raise StartupError(
            f"broker {error.controller_id} is the controller of this cluster;"
            " this version of ixion can only be the one broker of its cluster"
        ) from error
    parts.replicas.moves.resume(parts.replicas.partitions)


async def config_manager(parts: Parts) -> None:
    """25. Changes of settings are followed, also those that other brokers make."""
    changes = ConfigChanges(parts)
    parts.controller.configs.on_change = changes.apply
    await changes.start()


async def processors(parts: Parts) -> None:
    """26. Connections are read."""
    parts.server.start_processors()


async def started(parts: Parts) -> None:
    """27. Metrics are served; the garbage collector no longer looks at what the start has made."""
    if parts.web is not None:
        await show_pages(parts, parts.web)
    if parts.options.owns_process:
        relax_collector()
    parts.stalls.start_over()
