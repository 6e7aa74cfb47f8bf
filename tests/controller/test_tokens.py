"""Delegation tokens in the tree: changes of other brokers, and garbage among their notices."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from ixion.broker.controller.tokens import TokenManager
from ixion.broker.metadata import token_node
from ixion.broker.metadata.embedded import IN_MEMORY, EmbeddedStore
from ixion.broker.metadata.on_loop import EmbeddedEngine
from ixion.broker.security.tokens import Tokens

DAY_MS = 24 * 3_600_000


def test_garbage_among_the_notices_does_not_hide_a_token_that_was_revoked() -> None:
    async def work() -> None:
        engine = EmbeddedEngine(EmbeddedStore(IN_MEMORY))
        managers = []
        for _ in range(2):
            tokens = Tokens("secret", lambda: 0)
            session = engine.open_session(60_000)
            made = TokenManager(session, tokens, lambda: 0, max_lifetime_ms=7 * DAY_MS, expiry_time_ms=DAY_MS)
            await made.start()
            managers.append(made)
        first, second = managers
        token = await first.create("User:alice", "User:alice", (), 0)
        await until(lambda: second.tokens.get(token.token_id) is not None)
        await session.create(token_node.NEW_CHANGE, b"a//b", sequential=True)
        await first.expire("User:alice", first.tokens.hmac_of(token.token_id), -1)
        await until(lambda: second.tokens.get(token.token_id) is None)
        for made in managers:
            made.stop()
        engine.close()

    asyncio.run(asyncio.wait_for(work(), 60))


async def until(holds: Callable[[], bool]) -> None:
    while not holds():
        await asyncio.sleep(0)
