"""Waits for a node to be deleted: the ephemeral node of a killed process stays until its session expires."""

from __future__ import annotations

import asyncio

from ixion.broker.metadata.session import MetadataSession


async def gone_in_time(session: MetadataSession, path: str, timeout_ms: int) -> bool:
    """Whether the node is deleted within the time, or does not exist."""
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
