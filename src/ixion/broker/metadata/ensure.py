"""Creates missing nodes, in one transaction."""

from __future__ import annotations

from collections.abc import Iterable

from ixion.broker.metadata.errors import NodeExistsError
from ixion.broker.metadata.node import Create
from ixion.broker.metadata.path_rules import ROOT, split
from ixion.broker.metadata.session import MetadataSession


async def ensure(session: MetadataSession, paths: Iterable[str]) -> None:
    """Create the missing ones of these paths and their parents: persistent and empty."""
    wanted: dict[str, None] = {}  # in order, parents first
    for path in paths:
        above = [path]
        while above[-1] != ROOT:
            above.append(split(above[-1])[0])
        wanted |= dict.fromkeys(reversed(above))
    while True:
        missing = [Create(path) for path in wanted if await session.exists(path) is None]
        if not missing:
            return
        try:
            await session.multi(missing)
        except NodeExistsError:
            continue  # another broker has created some of them: read again
