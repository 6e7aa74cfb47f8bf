"""The broker's pages over HTTP: their port, and the parts that they read. As for listeners, only this machine may
connect unless the user allows others."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from ixion.broker.errors import StartupError
from ixion.broker.preflight import is_loopback
from ixion.model.delay_names import is_sibling
from ixion.replica.internal_topic import GROUP_OFFSETS, TRANSACTION_STATE

if TYPE_CHECKING:
    from ixion.broker.parts import Parts
    from ixion.coordinators.loader import Loader
    from ixion.model.topic_partition import TopicPartition
    from ixion.timer.turns import Steps
    from ixion.web.families import Sources
    from ixion.web.membership import Membership
    from ixion.web.pages import Standing
    from ixion.web.response import Pages
    from ixion.web.server import WebServer


class PagesAt(NamedTuple):
    host: str = "127.0.0.1"
    port: int = 9644
    required: bool = False  # whether the start fails without them


def bind_pages(at: PagesAt, allow_remote: bool) -> WebServer | str:
    """The server; or a warning to log after the start, if the port is taken and the pages are not required."""
    from ixion.web.server import WebServer

    if not is_loopback(at.host) and not allow_remote:
        raise StartupError(
            f"metrics on {at.host}:{at.port} could be read from other machines: use 127.0.0.1,"
            " or start with --allow-remote if that is what you want"
        )
    try:
        return WebServer(at.host, at.port)
    except OSError as error:
        reason = os.strerror(error.errno) if error.errno else error
        said = f"metrics cannot be served on {at.host}:{at.port}: {reason}"
        if at.required:
            raise StartupError(
                f"{said}; choose another with --metrics-port, or none with --metrics-port off"
            ) from error
        return f"{said}; the broker runs without them (--metrics-port chooses another address)"


async def show_pages(parts: Parts, web: WebServer) -> None:
    await web.start(lambda: make_pages(parts))


def make_pages(parts: Parts) -> Pages:
    from ixion import __version__
    from ixion.web.pages import pages

    title = f"ixion {__version__}, broker {parts.node_id} of cluster {parts.cluster_id}"
    return pages(title, parts.logs, lambda: sources(parts), lambda: standing(parts))


def standing(parts: Parts) -> Standing:
    from ixion.web.pages import Standing

    registered_ms = parts.registered_ms
    registered: str | None = ""
    if parts.engine is None:
        registered = None if registered_ms is None else utc(registered_ms)
    keys = [key for key in parts.replicas.partitions if not is_sibling(key[0])] if parts.to_controller else []
    behind = sum(not in_sync(parts, key) for key in keys)
    return Standing(registered, parts.leaving, behind, len(parts.replicas.offline))


def in_sync(parts: Parts, key: TopicPartition) -> bool:
    known = parts.image.partition(*key)
    return known is not None and parts.node_id in known.isr


def utc(time_ms: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time_ms / 1e3))


def membership(parts: Parts) -> Membership | None:
    if parts.fetchers is None:
        return None
    from ixion.controller.cluster.controller import ClusterController
    from ixion.web.membership import Membership

    assert isinstance(parts.controller, ClusterController)
    figures = parts.controller.figures
    return Membership(
        registered_ms=parts.registered_ms,
        renewed=0 if parts.renewal is None else parts.renewal.renewed,
        followed=len(parts.fetchers.followed),
        max_lag=parts.fetchers.max_lag(),
        is_controller=parts.controller.is_active,
        terms=figures.terms,
        elections=figures.elections,
        unclean=figures.unclean,
    )


def sources(parts: Parts) -> Sources:
    from ixion import __version__
    from ixion.network.request_times import BOUNDS_NS
    from ixion.web.families import Sources

    replicas = parts.replicas
    return Sources(
        info={"version": __version__, "cluster_id": parts.cluster_id, "node_id": str(parts.node_id)},
        network=parts.server.snapshot,
        times=parts.server.times,
        bounds_ns=BOUNDS_NS,
        timer=parts.timer,
        stalls=parts.stalls,
        replicas=replicas,
        schedules=parts.schedules,
        clock_ms=parts.clock_ms,
        logs=parts.logs,
        image=parts.image,
        purgatories=(
            *(
                replicas.produce_purgatory,
                replicas.fetch_purgatory,
                replicas.delete_records_purgatory,
                replicas.elect_leader_purgatory,
            ),
            *(() if parts.groups.made is None else parts.groups.made.purgatories),
        ),
        groups=lambda: group_states(parts),
        transactions=parts.transactions.count_states,
        loading=loaders(parts),
        throttled=parts.quotas.throttled,
        authorizer=parts.authorizer,
        membership=lambda: membership(parts),
    )


def group_states(parts: Parts) -> Steps[Mapping[str, int]]:
    made = parts.groups.made
    if made is None:
        return {}
    return (yield from made.count_states())


def loaders(parts: Parts) -> dict[str, Loader]:
    made = parts.groups.made
    groups = {} if made is None else {GROUP_OFFSETS: made.shards.loader}
    transactions = parts.transactions.made
    return groups if transactions is None else {**groups, TRANSACTION_STATE: transactions.loader}
