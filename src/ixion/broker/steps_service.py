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
from ixion.controller.local_broker import LocalBroker
from ixion.coordinators.txn.build import transaction_coordinator as make_transactions
from ixion.replica.internal_topic import TRANSACTION_STATE
from ixion.timer.collector import relax_collector


async def controller(parts: Parts) -> None:
    """17. The controller is elected; topics get their leaders."""
    local = LocalBroker(parts.node_id, parts.replicas, parts.logs, parts.config)
    parts.controller = Controller(parts.session, parts.image, local, parts.config, parts.clock_ms)
    parts.undo.append(("controller", parts.controller.stop))
    if parts.fresh and (parts.logs.logs or parts.logs.unreadable):
        refuse_half(parts)
        await parts.controller.queue.in_thread(lambda: adopt_logs(parts.session, parts.logs, parts.node_id))


def refuse_half(parts: Parts) -> None:
    """Topics of a directory that cannot be read would be missing from the metadata for good."""
    for directory in parts.logs.directories:
        if directory.state.offline:
            raise StartupError(
                f"topics found on disk cannot be adopted while a log directory is offline: {directory.state.reason}"
            )


async def admin_manager(parts: Parts) -> None:
    """18. Internal topics, to be made when somebody first needs them."""
    parts.internal_topics = make_internal_topics(parts)


async def group_coordinator(parts: Parts) -> None:
    """19. Groups, wherever their part of __consumer_offsets is led here, and the look for old offsets."""
    groups = parts.groups = LateGroups(parts)
    parts.replicas.on_leadership.append(groups.follow)
    parts.controller.topics.on_deleted.append(groups.on_topics_deleted)
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
    parts.controller.configs.on_change = changes.apply
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
    parts.stalls.start_over()
