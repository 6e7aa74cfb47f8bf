"""The pages for programs: `/metrics`, `/healthz`, `/readyz`, and `/wheel` as JSON. Those for people are in `console`.

`/healthz` is for alarms: it lists the problems of this broker. `/readyz` is for load balancers and rolling restarts:
503 while clients should use other brokers, or while no other broker may be stopped because replicas here have not
caught up.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from ixion.broker.web.response import Answer, Ask, Response, plain
from ixion.broker.web.routes import Routes

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from ixion.broker.log.manager import LogManager
    from ixion.broker.web.families import Sources
    from ixion.broker.web.request import HttpRequest


class Standing(NamedTuple):
    """The state of a broker in its cluster. `registered`: since when; None: not registered; empty: a single broker."""

    registered: str | None = ""
    leaving: bool = False
    behind: int = 0  # replicas here that are not in sync
    offline: int = 0  # replicas here whose disk has failed


def pages(
    title: str,
    logs: LogManager,
    sources: Callable[[], Sources],
    standing: Callable[[], Standing] = Standing,
    console: Callable[[], Awaitable[Ask]] | None = None,
) -> Ask:
    """`sources` is called for the metrics; `console` is called for the pages for people, and imports their code."""

    async def index(_request: HttpRequest) -> Answer:
        lines = (
            "/metrics   for Prometheus",
            "/healthz   ok, or the problems",
            "/readyz    ready, or what is missing",
            "/wheel     the timing wheel and delayed records, as JSON",
            "/api/v1/openapi.json   what the pages for people show, as JSON",
        )
        return plain(200, "\n".join((title, "", *lines)))

    async def metrics(_request: HttpRequest) -> Answer:
        from ixion.broker.web.exposition import KIND
        from ixion.broker.web.families import metrics

        return Response((await metrics(sources())).encode(), kind=KIND)

    async def healthz(_request: HttpRequest) -> Answer:
        now = standing()
        wrong = ailments(logs)
        if now.registered is None:
            wrong.append("not registered in ZooKeeper: the session has expired, and there is no new one yet")
        if wrong:
            return plain(503, "\n".join(wrong))
        return plain(200, f"ok, registered since {now.registered}" if now.registered else "ok")

    async def readyz(_request: HttpRequest) -> Answer:
        missing = shortcomings(standing())
        return plain(503, "\n".join(missing)) if missing else plain(200, "ready")

    async def wheel(_request: HttpRequest) -> Answer:
        from ixion.broker.web.wheel import wheel_page

        return Response(wheel_page(title, sources()), kind="application/json")

    routes = Routes()
    for path, page in {
        "/": index,
        "/metrics": metrics,
        "/healthz": healthz,
        "/readyz": readyz,
        "/wheel": wheel,
    }.items():
        routes.add(path, page)

    async def ask(request: HttpRequest) -> Answer:
        for_people = request.wants_html if request.path in ("/", "/wheel") else not routes.has(request.path)
        if for_people and console is not None:
            return await (await console())(request)
        return await routes.ask(request)

    return ask


def ailments(logs: LogManager) -> list[str]:
    """The problems of this broker, one line each."""
    found = []
    for directory in logs.directories:
        state = directory.state
        if state.offline:
            found.append(f"log directory {state.path} is offline: {state.reason}")
        elif state.full:
            found.append(f"the disk of {state.path} is full: appends are refused")
    for (topic, partition), reason in logs.unreadable.items():
        found.append(f"partition {topic}-{partition} cannot be used: {reason}")
    return found


def shortcomings(now: Standing) -> list[str]:
    found = []
    if now.leaving:
        found.append("stopping: leaders move to other brokers")
    if now.registered is None:
        found.append("not registered in ZooKeeper")
    if now.behind:
        found.append(f"{now.behind} replicas here are not in sync yet")
    if now.offline:
        found.append(f"{now.offline} replicas here are offline: their disk has failed")
    return found
