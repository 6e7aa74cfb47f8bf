"""The broker's pages over HTTP: their port, and the parts that they read. As for listeners, only this machine may
connect unless the user allows others."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

from ixion.broker.replica.internal_topic import GROUP_OFFSETS, SHARE_STATE, TRANSACTION_STATE
from ixion.broker.startup.errors import StartupError
from ixion.broker.startup.preflight import is_loopback
from ixion.config.listeners import listeners
from ixion.language.model.delay_names import is_sibling

if TYPE_CHECKING:
    from ixion.broker.coordinators.loader import Loader
    from ixion.broker.startup.console import LateConsole
    from ixion.broker.startup.parts import Parts
    from ixion.broker.web.families import Sources
    from ixion.broker.web.membership import Membership
    from ixion.broker.web.pages import Standing
    from ixion.broker.web.response import Ask
    from ixion.broker.web.server import WebServer
    from ixion.language.model.topic_partition import TopicPartition
    from ixion.purgatory.purgatory import DelayedOperationPurgatory
    from ixion.timer.turns import Steps


class PagesAt(NamedTuple):
    host: str = "127.0.0.1"
    port: int = 9644
    required: bool = False  # whether the start fails without them


def bind_pages(at: PagesAt, allow_remote: bool) -> WebServer | str:
    """The server; or a warning to log after the start, if the port is taken and the pages are not required."""
    from ixion.broker.web.server import WebServer

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
    from ixion.broker.startup.console import LateConsole

    protect(parts, web)
    names = {endpoint.host for endpoint in listeners(parts.config.current).advertised if endpoint.host}
    console = LateConsole(parts, web)
    parts.undo.append(("figures of the pages", console.stop))
    await web.start(lambda: make_pages(parts, console), names)


def protect(parts: Parts, web: WebServer) -> None:
    """HTTPS with the certificate of a listener, by web.tls.listener. No certificate is asked of browsers, even if that
    listener asks one of its clients: users sign in."""
    from ixion.config.web_settings import WEB_TLS_LISTENER

    config = parts.config.current
    wanted = config[WEB_TLS_LISTENER]
    if not wanted:
        return
    import ssl

    from ixion.broker.startup.certificates import Certificates
    from ixion.broker.startup.listeners import uses_tls

    with_tls = [each.listener for each in listeners(config).bound if uses_tls(each)]
    if wanted not in with_tls:
        known = ", ".join(with_tls) or "there is none"
        raise StartupError(f"{WEB_TLS_LISTENER.name} is {wanted!r}; it must be a listener with TLS: {known}")
    certificates = Certificates(config, wanted)
    parts.config.listen(certificates.change, certificates.check)

    def context() -> ssl.SSLContext:
        made = certificates.context()
        made.verify_mode = ssl.CERT_NONE
        return made

    web.secure(context)


def make_pages(parts: Parts, console: LateConsole) -> Ask:
    from ixion import __version__
    from ixion.broker.web.pages import pages

    title = f"ixion {__version__}, broker {parts.node_id} of cluster {parts.cluster_id}"
    return pages(title, parts.logs, lambda: sources(parts), lambda: standing(parts), console.ask)


def standing(parts: Parts) -> Standing:
    from ixion.broker.web.pages import Standing

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
    from ixion.broker.controller.cluster.controller import ClusterController
    from ixion.broker.web.membership import Membership

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
    from ixion.broker.network.request_times import BOUNDS_NS
    from ixion.broker.web.families import Sources

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
        shares=parts.share_leaders.made,
        clock_ms=parts.clock_ms,
        logs=parts.logs,
        image=parts.image,
        purgatories=purgatories(parts),
        groups=lambda: group_states(parts),
        transactions=parts.transactions.count_states,
        loading=loaders(parts),
        throttled=parts.quotas.throttled,
        authorizer=parts.authorizer,
        membership=lambda: membership(parts),
    )


def purgatories(parts: Parts) -> tuple[DelayedOperationPurgatory, ...]:
    replicas = parts.replicas
    return (
        replicas.produce_purgatory,
        replicas.fetch_purgatory,
        replicas.delete_records_purgatory,
        replicas.elect_leader_purgatory,
        *(() if parts.groups.made is None else parts.groups.made.purgatories),
        *(() if parts.share_leaders.made is None else (parts.share_leaders.made.purgatory,)),
    )


def group_states(parts: Parts) -> Steps[Mapping[str, int]]:
    made = parts.groups.made
    if made is None:
        return {}
    return (yield from made.count_states())


def loaders(parts: Parts) -> dict[str, Loader]:
    found: dict[str, Loader] = {}
    groups, transactions, shares = parts.groups.made, parts.transactions.made, parts.shares.made
    if groups is not None:
        found[GROUP_OFFSETS] = groups.shards.loader
    if transactions is not None:
        found[TRANSACTION_STATE] = transactions.loader
    if shares is not None:
        found[SHARE_STATE] = shares.loader
    return found
