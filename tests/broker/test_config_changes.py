"""Notices of changed settings: each is followed, whatever happens in between."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any, cast

from ixion.broker.controller.configs import operations_to_configure
from ixion.broker.metadata import paths
from ixion.broker.metadata.embedded import IN_MEMORY, EmbeddedStore
from ixion.broker.metadata.ensure import ensure
from ixion.broker.metadata.errors import ConnectionLostError, MetadataError, SessionExpiredError
from ixion.broker.metadata.image import ClusterImage, TopicImage
from ixion.broker.metadata.node import Node
from ixion.broker.metadata.notification_node import encode_config_change
from ixion.broker.metadata.on_loop import EmbeddedEngine, LoopSession
from ixion.broker.startup.config_changes import KEPT_MS, ConfigChanges
from tests.broker.support import run


class Failing(LoopSession):
    """A session that fails at some of its calls."""

    on_get: dict[str, MetadataError]
    on_delete: MetadataError | None = None

    async def get(self, path: str) -> Node:
        if path in self.on_get:
            raise self.on_get[path]
        return await super().get(path)

    async def delete(self, path: str, version: int = -1) -> None:
        if self.on_delete is not None:
            raise self.on_delete
        await super().delete(path, version)


class Stage:
    def __init__(self, engine: EmbeddedEngine) -> None:
        self.engine = engine
        self.session = self.open()
        self.image = ClusterImage(cluster_id="c")
        for name in ("t", "u"):
            self.image.put_topic(TopicImage(name=name, topic_id=name.encode() * 16, partitions=[], config={}))
        self.now_ms = 0
        self.parts = SimpleNamespace(
            session=self.session,
            last_notice="",
            loop=asyncio.get_running_loop(),
            background=set(),
            clock_ms=lambda: self.now_ms,
            image=self.image,
            replicas=SimpleNamespace(reconfigure=lambda _: None),
        )
        self.changes = ConfigChanges(cast(Any, self.parts))

    def open(self) -> Failing:
        session = Failing(self.engine, self.engine.store.open_session(60_000))
        session.on_get = {}
        return session

    async def set(self, topic: str, value: str) -> None:
        stat = await self.session.exists(paths.config("topics", topic))
        version = None if stat is None else stat.version
        await self.session.multi(operations_to_configure("topics", topic, {"retention.ms": value}, version))

    def configs(self) -> list[str | None]:
        return [self.image.topics[name].config.get("retention.ms") for name in ("t", "u")]

    async def settle(self) -> None:
        for _ in range(50):
            await asyncio.sleep(0)
        await asyncio.gather(*self.parts.background)


def play(story: Callable[[Stage], Awaitable[None]]) -> None:
    async def work() -> None:
        engine = EmbeddedEngine(EmbeddedStore(IN_MEMORY))
        stage = Stage(engine)
        await ensure(stage.session, paths.BASE)
        await stage.changes.start()
        await story(stage)
        engine.close()

    run(work)


def test_a_change_is_followed_by_the_next_session_if_this_one_expires_before_it_is_read() -> None:
    async def story(stage: Stage) -> None:
        path = paths.config("topics", "u")
        stage.session.on_get[path] = SessionExpiredError(path, "the session is expired")
        await stage.set("t", "1")
        await stage.set("u", "2")
        await stage.settle()
        assert stage.configs() == ["1", None]
        stage.parts.session = session = stage.open()
        await stage.changes.resume(session)
        assert stage.configs() == ["1", "2"]

    play(story)


def test_a_broker_that_was_away_while_notices_were_deleted_reads_all_settings_again() -> None:
    async def story(stage: Stage) -> None:
        await stage.set("t", "1")
        await stage.settle()
        assert stage.configs() == ["1", None]
        other = stage.open()
        await stage.session.close()  # it gets no more changes
        stage.session = other
        for topic in ("t", "u"):
            await stage.set(topic, "2")
        for name in await other.children(paths.CONFIG_CHANGES):  # as every broker does after a quarter of an hour
            await other.delete(f"{paths.CONFIG_CHANGES}/{name}")
        await stage.settle()
        assert stage.configs() == ["1", None]
        stage.parts.session = other
        await stage.changes.resume(other)
        assert stage.configs() == ["2", "2"]

    play(story)


def test_a_broker_that_starts_for_longer_than_notices_are_kept_reads_all_settings_again() -> None:
    async def story(stage: Stage) -> None:
        for last in ("config_change_0000000000", ""):  # the last notice of which it knew, before it opened its logs
            await stage.set("t", str(len(last) + 1))
            for name in await stage.session.children(paths.CONFIG_CHANGES):
                await stage.session.delete(f"{paths.CONFIG_CHANGES}/{name}")
            await stage.set("u", "2")  # followed by another broker, which deletes what is old
            stage.parts.last_notice = last
            changes = ConfigChanges(cast(Any, stage.parts))
            stage.image.topics["t"].config = {}
            await changes.start()
            assert stage.configs() == [str(len(last) + 1), "2"]

    play(story)


def test_garbage_among_the_notices_does_not_hide_those_behind_it() -> None:
    async def story(stage: Stage) -> None:
        for garbage in (b"garbage", encode_config_change("topics//..")):
            await stage.session.create(paths.NEW_CONFIG_CHANGE, garbage, sequential=True)
        await stage.set("t", "1")
        await stage.settle()
        assert stage.configs() == ["1", None]

    play(story)


def test_a_connection_lost_while_old_notices_are_deleted_costs_no_change() -> None:
    async def story(stage: Stage) -> None:
        await stage.set("t", "1")
        await stage.settle()
        stage.now_ms = 10**15 + KEPT_MS
        stage.session.on_delete = ConnectionLostError(paths.CONFIG_CHANGES, "test")
        await stage.set("u", "2")
        await stage.settle()
        assert stage.configs() == ["1", "2"]

    play(story)
