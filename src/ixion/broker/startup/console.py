"""The live page of this broker: what it may read, and when it shows nothing. Its code is imported when it is needed.

The figures of the last hour are taken from `FIRST_LOOK_MS` after the start on, whether or not a page is open.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final

from ixion.broker.startup.preflight import is_loopback

if TYPE_CHECKING:
    from ixion.broker.startup.parts import Parts
    from ixion.broker.web.console.api.registry import Registry
    from ixion.broker.web.console.door import Door, Way
    from ixion.broker.web.console.history import History
    from ixion.broker.web.console.inside import Inside
    from ixion.broker.web.console.others import Others
    from ixion.broker.web.response import Ask
    from ixion.broker.web.server import WebServer

logger = logging.getLogger(__name__)

FIRST_LOOK_MS: Final = 5_000
LOOKS_AT_ONCE: Final = 2  # at records, on worker threads


class LateConsole:
    def __init__(self, parts: Parts, web: WebServer) -> None:
        self._parts = parts
        self._web = web
        self._history: History | None = None
        self._inside: Inside | None = None
        self._others: Others | None = None
        self._ask: asyncio.Task[Ask] | None = None
        self._first_look = parts.timer.call_later(FIRST_LOOK_MS, self._look)

    def _look(self) -> None:
        self.history().look()

    def history(self) -> History:
        from ixion.broker.web.console.history import History

        if self._history is None:
            self._history = History(self.inside)
        return self._history

    async def ask(self) -> Ask:
        """The pages. Their code is imported on another thread: it takes some 50 ms."""
        if self._ask is None:
            self._ask = asyncio.create_task(self._make())
        return await asyncio.shield(self._ask)

    async def _make(self) -> Ask:
        await asyncio.to_thread(import_code)
        from ixion.broker.web.console.app import Console

        return Console(self.inside()).ask()

    def inside(self) -> Inside:
        if self._inside is None:
            self._others = make_others(self._parts)
            self._inside = make_inside(
                self._parts,
                self.history(),
                self._others,
                lambda: closed(self._parts, self._web),
                make_door(self._parts, self._web),
                self._web.only_here,
            )
        return self._inside

    def stop(self) -> None:
        self._first_look.cancel()
        if self._history is not None:
            self._history.stop()
        if self._others is not None:
            self._others.close()


def import_code() -> None:
    import ixion.broker.web.console.app  # noqa: F401


def closed(parts: Parts, web: WebServer) -> str:
    """Why the page shows nothing; empty: it does. The page shows no more than any Kafka client may see."""
    from ixion.config.listeners import listeners

    bound = listeners(parts.config.current).bound
    if asks_for_login(parts):
        if not ways_in(parts):
            return (
                "clients of this broker prove by a certificate who they are, and this page cannot ask for one;"
                " a listener with SASL lets users sign in here"
            )
        if not web.only_here and not web.is_secure:
            return (
                "users would send their passwords over the network in plain text;"
                " name a listener with TLS in web.tls.listener, or choose a loopback address with --metrics-port"
            )
    if not web.only_here and all(is_loopback(each.host) for each in bound):
        return (
            "Kafka clients on other machines cannot reach this broker, so this page is not shown to them;"
            " choose a loopback address with --metrics-port"
        )
    return ""


def asks_for_login(parts: Parts) -> bool:
    """Whether some clients must log in: then nobody sees the page without."""
    from ixion.broker.startup.listeners import authenticates
    from ixion.config.listeners import listeners

    config = parts.config.current
    return any(authenticates(config, each) for each in listeners(config).bound)


def ways_in(parts: Parts) -> list[Way]:
    """The listeners with SASL for clients; of a broker without such, all with SASL."""
    from ixion.broker.web.console.door import Way

    found = [each.listener for each in parts.server.acceptors if each.listener.gate is not None]
    of_clients = [each for each in found if not each.inter_broker and not each.control_plane]
    return [Way(tuple(each.gate().mechanisms), each.gate) for each in of_clients or found if each.gate is not None]


def make_door(parts: Parts, web: WebServer) -> Door:
    from ixion.broker.web.console.door import Door
    from ixion.config.security_settings import CONNECTION_FAILED_AUTHENTICATION_DELAY_MS

    return Door(
        asks=asks_for_login(parts),
        ways=lambda: ways_in(parts),
        authorizer=parts.authorizer,
        credentials=parts.credentials,
        patience_ms=lambda: parts.config.current[CONNECTION_FAILED_AUTHENTICATION_DELAY_MS],
        is_secure=web.is_secure,
        port=web.port,
    )


def make_others(parts: Parts) -> Others:
    """Connections of their own: an answer that takes long must not hold up transactions."""
    from ixion.broker.replica.broker_channels import BrokerChannels
    from ixion.broker.web.console.others import Others
    from ixion.config.listeners import listeners

    def make() -> BrokerChannels | None:
        from ixion.broker.startup.peers import connect_to

        if parts.engine is not None:
            return None
        listener = listeners(parts.config.current).inter_broker
        return BrokerChannels(
            parts.image, listener, f"broker-{parts.node_id}-pages", connect_to(parts.config, listener)
        )

    return Others(parts.image, parts.node_id, make)


def make_inside(
    parts: Parts, history: History, others: Others, closed: Callable[[], str], door: Door, only_here: bool
) -> Inside:
    from ixion import __version__
    from ixion.broker.network.request_times import BOUNDS_NS
    from ixion.broker.startup.pages import purgatories
    from ixion.broker.web.console.inside import Inside
    from ixion.broker.web.pages import ailments
    from ixion.clients.address import Address

    endpoint = parts.server.endpoints[0]
    host = f"[{endpoint.host}]" if ":" in endpoint.host else endpoint.host or "127.0.0.1"
    return Inside(
        version=__version__,
        node_id=parts.node_id,
        cluster_id=parts.cluster_id,
        bootstrap=f"{host}:{endpoint.port}",
        clock_ms=parts.clock_ms,
        config=parts.config,
        image=parts.image,
        replicas=parts.replicas,
        logs=parts.logs,
        timer=parts.timer,
        stalls=parts.stalls,
        schedules=parts.schedules,
        network=parts.server.snapshot,
        connections=parts.server.connections,
        times=parts.server.times,
        bounds_ns=BOUNDS_NS,
        throttled=parts.quotas.throttled,
        quotas=parts.quotas,
        purgatories=lambda: purgatories(parts),
        groups=lambda: parts.groups.made,
        transactions=lambda: parts.transactions.made,
        share_leaders=lambda: parts.share_leaders.made,
        credentials=parts.credentials,
        tokens=parts.tokens,
        authorizer=parts.authorizer,
        ailments=lambda: ailments(parts.logs),
        history=history,
        others=others,
        closed=closed,
        working=asyncio.Semaphore(LOOKS_AT_ONCE),
        door=door,
        registry=make_registry(parts),
        writes=may_write(parts, only_here),
        address=Address(endpoint.host or "127.0.0.1", endpoint.port),
        connect=partial(parts.server.connect_within, endpoint.name),
    )


def make_registry(parts: Parts) -> Registry | None:
    """None if none is set. One that cannot be asked is left out, with a line in the log."""
    from ixion.broker.web.console.api.registry import Registry
    from ixion.config.web_settings import WEB_SCHEMA_REGISTRY_URL

    url = parts.config.current[WEB_SCHEMA_REGISTRY_URL]
    if not url:
        return None
    try:
        return Registry(url)
    except ValueError as error:
        logger.warning("%s is %r; it must be %s", WEB_SCHEMA_REGISTRY_URL.name, url, error)
        return None


def may_write(parts: Parts, only_here: bool) -> bool:
    """By web.write; without it, where only this machine can reach the broker and no client has to log in."""
    from ixion.broker.startup.listeners import authenticates
    from ixion.config.listeners import listeners
    from ixion.config.web_settings import WEB_WRITE

    config = parts.config.current
    given = config[WEB_WRITE]
    if given is not None:
        return given
    bound = listeners(config).bound
    return (
        only_here
        and parts.authorizer is None
        and all(is_loopback(each.host) and not authenticates(config, each) for each in bound)
    )
