"""The pages: `/`, `/metrics`, `/healthz`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ixion.web.response import Pages, Response, plain

if TYPE_CHECKING:
    from collections.abc import Callable

    from ixion.log.manager import LogManager
    from ixion.web.families import Sources


def pages(title: str, logs: LogManager, sources: Callable[[], Sources]) -> Pages:
    """`sources` is called with the first request for the metrics."""

    async def index() -> Response:
        return plain(200, f"{title}\n\n/metrics   for Prometheus\n/healthz   ok, or the problems")

    async def metrics() -> Response:
        from ixion.web.exposition import KIND
        from ixion.web.families import metrics

        return Response((await metrics(sources())).encode(), kind=KIND)

    async def healthz() -> Response:
        wrong = ailments(logs)
        return plain(503, "\n".join(wrong)) if wrong else plain(200, "ok")

    return {"/": index, "/metrics": metrics, "/healthz": healthz}


def ailments(logs: LogManager) -> list[str]:
    """What keeps this broker from doing all of its work, a line each."""
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
