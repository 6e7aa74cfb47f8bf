"""Two brokers that change the same thing at the same time: both acknowledged changes are made."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import pytest

from ixion.broker.controller.configs import Configs
from ixion.broker.controller.queue import ChangeQueue
from ixion.broker.controller.tokens import TokenManager
from ixion.broker.metadata import paths
from ixion.broker.metadata.cluster_node import encode_features
from ixion.broker.metadata.config_node import read_config
from ixion.broker.metadata.embedded import IN_MEMORY, EmbeddedStore
from ixion.broker.metadata.ensure import ensure
from ixion.broker.metadata.image import ClusterImage
from ixion.broker.metadata.node import ANY_VERSION, Node, Operation, Result, Stat
from ixion.broker.security.tokens import Tokens
from ixion.language.model.errors import ErrorCode, KafkaError
from tests.metadata.awaited import Awaited
from tests.metadata.engines import Session

ROUNDS = 20
USER = "User:a"


class Slow(Awaited):
    """Every call waits for a drawn number of turns of the loop."""

    def __init__(self, inner: Session, drawn: random.Random) -> None:
        super().__init__(inner)
        self._drawn = drawn

    async def _wait(self) -> None:
        for _ in range(self._drawn.randrange(4)):
            await asyncio.sleep(0)

    async def get(self, path: str) -> Node:
        await self._wait()
        return await super().get(path)

    async def exists(self, path: str) -> Stat | None:
        await self._wait()
        return await super().exists(path)

    async def set(self, path: str, data: bytes, version: int = ANY_VERSION) -> Stat:
        await self._wait()
        return await super().set(path, data, version)

    async def multi(self, operations: Sequence[Operation]) -> list[Result]:
        await self._wait()
        return await super().multi(operations)


@pytest.fixture
def store() -> Iterator[EmbeddedStore]:
    made = EmbeddedStore(IN_MEMORY)
    yield made
    made.close()


def setting(name: str, value: str) -> Callable[[dict[str, str]], Mapping[str, str]]:
    return lambda known: {**known, name: value}


@pytest.mark.parametrize("kind", ["topics", "users", "brokers"])
def test_settings(store: EmbeddedStore, kind: str) -> None:
    drawn = random.Random(kind)

    async def work() -> None:
        sessions = [Slow(store.open_session(1_000), drawn) for _ in range(3)]
        await ensure(sessions[0], paths.BASE)
        brokers = [Configs(ChangeQueue(), each, ClusterImage(cluster_id="c")) for each in sessions]
        for turn in range(ROUNDS):
            entity = f"{turn % 5}"  # the first changes create the node
            changes = [
                each.alter(kind, entity, setting(f"{number}.{turn}", "x")) for number, each in enumerate(brokers)
            ]
            await asyncio.gather(*changes)
        found = {f"{entity}": await read_config(sessions[0], kind, f"{entity}") for entity in range(5)}
        for turn in range(ROUNDS):
            assert {f"{number}.{turn}" for number in range(3)} <= found[f"{turn % 5}"].keys()

    asyncio.run(work())


def test_features(store: EmbeddedStore) -> None:
    """A controller that has not seen the last change gets an error, and the client tries again."""

    async def work() -> None:
        session = Awaited(store.open_session(1_000))
        await session.create(paths.FEATURES, encode_features({}))
        first, second = (Configs(ChangeQueue(), session, ClusterImage(cluster_id="c")) for _ in range(2))
        await first.change_features(lambda known: {**known, "group.version": 1})
        with pytest.raises(KafkaError) as refused:
            await second.change_features(lambda known: {**known, "transaction.version": 2})
        assert refused.value.code is ErrorCode.NOT_CONTROLLER

    asyncio.run(work())


def test_a_renewed_token_is_not_removed_by_a_broker_that_missed_the_event(store: EmbeddedStore) -> None:
    now_ms = 0

    async def work() -> None:
        nonlocal now_ms

        def manager() -> Any:
            session = Awaited(store.open_session(1_000))
            session.watch = lambda *_: lambda: None  # type: ignore[method-assign]  # it gets no events
            tokens = Tokens("secret", lambda: now_ms)
            return TokenManager(session, tokens, lambda: now_ms, max_lifetime_ms=1_000_000, expiry_time_ms=1_000)

        first = manager()
        await first.start()
        token = await first.create(USER, USER, (), -1)
        second = manager()
        await second.start()
        now_ms = 900
        assert await second.renew(USER, second.tokens.hmac_of(token.token_id), 5_000) == 5_900
        now_ms = 2_000
        await first.remove_expired()
        assert first.tokens.get(token.token_id).expires_ms == 5_900
        assert await first.renew(USER, first.tokens.hmac_of(token.token_id), 10_000) == 12_000

    asyncio.run(work())
