"""Waiting for a node to go: the ephemeral node of a process that was killed lives until its session expires."""

from __future__ import annotations

import asyncio

from ixion.metadata.session import MetadataSession


async def gone_in_time(session: MetadataSession, path: str, timeout_ms: int) -> bool:
    """Whether the node goes within the time, or is gone already."""
    changed = asyncio.Event()
    cancel = session.watch(path, lambda _: changed.set())
    try:
        async with asyncio.timeout(timeout_ms / 1_000):
            while await session.exists(path) is not None:
                await changed.wait()
                changed.clear()
    except TimeoutError:
        return False
    finally:
        cancel()
    return True
