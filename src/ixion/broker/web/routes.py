"""Which page belongs to a path: `/topics/{topic}` fits `/topics/orders` and gives the page `at["topic"]`."""

from __future__ import annotations

from typing import NamedTuple

from ixion.broker.web.request import HttpRequest
from ixion.broker.web.response import Answer, Page, RefusedError


class Route(NamedTuple):
    segments: tuple[str, ...]
    page: Page
    method: str


class Routes:
    def __init__(self) -> None:
        self._by_length: dict[int, list[Route]] = {}

    def add(self, pattern: str, page: Page, method: str = "GET") -> None:
        segments = tuple(pattern.split("/")[1:])
        self._by_length.setdefault(len(segments), []).append(Route(segments, page, method))

    def has(self, path: str) -> bool:
        """Whether a page has exactly this path."""
        segments = tuple(path.split("/")[1:])
        return any(route.segments == segments for route in self._by_length.get(len(segments), ()))

    async def ask(self, request: HttpRequest) -> Answer:
        given = request.segments
        method = "GET" if request.method == "HEAD" else request.method
        others = ""
        for route in self._by_length.get(len(given), ()):
            at = fits(route.segments, given)
            if at is not None:
                if route.method == method:
                    return await route.page(request._replace(at=at))
                others = route.method
        if others:
            raise RefusedError(405, f"{others} only")
        raise RefusedError(404, "there is no such page")


def fits(pattern: tuple[str, ...], given: list[str]) -> dict[str, str] | None:
    at: dict[str, str] = {}
    for wanted, segment in zip(pattern, given, strict=True):
        if wanted.startswith("{"):
            if not segment:
                return None
            at[wanted[1:-1]] = segment
        elif wanted != segment:
            return None
    return at
