"""Follows changes of settings: `/config/changes` names the entity that changed, `/config` holds its settings.

Changes that this broker makes itself are applied at once, so that the client sees them when it gets its answer; the
notification that follows finds nothing new. Notifications are kept for a quarter of an hour, for brokers that were
disconnected. A broker that was away for longer finds the last one that it followed gone, and reads all settings again.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from ixion.broker.metadata import paths
from ixion.broker.metadata.config_node import read_config
from ixion.broker.metadata.content import CorruptNodeError
from ixion.broker.metadata.errors import ConnectionLostError, MetadataError, NoNodeError, SessionExpiredError
from ixion.broker.metadata.notification_node import decode_config_change
from ixion.broker.metadata.session import Event, MetadataSession
from ixion.broker.startup.quota_nodes import children, take_address, take_quotas
from ixion.broker.startup.stored_settings import stored_settings
from ixion.config.dynamic import Level
from ixion.config.errors import InvalidSettingError
from ixion.config.group import check_group
from ixion.config.replica_settings import UNCLEAN_LEADER_ELECTION_ENABLE
from ixion.timer.turns import in_turns

if TYPE_CHECKING:
    from ixion.broker.startup.parts import Parts

logger = logging.getLogger(__name__)

GROUPS: Final = f"{paths.CONFIG}/groups"
KEPT_MS: Final = 15 * 60 * 1000
KINDS: Final = ("brokers", "topics", "users", "clients", "ips", "groups")


class ConfigChanges:
    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._seen = parts.last_notice  # the last notification that was followed; names sort by age
        self._turn = asyncio.Lock()

    async def start(self) -> None:
        """Follow changes, also those since this start read the settings: recovering logs may have taken long."""
        session = self._parts.session
        await self._catch_up(session)
        if await session.exists(GROUPS) is not None:
            for entity in await session.children(GROUPS):
                self._take_group(entity, await stored_settings(session, "groups", entity))

    async def resume(self, session: MetadataSession) -> None:
        """Continue with another session, and follow the changes that were missed."""
        await self._catch_up(session)

    async def _catch_up(self, session: MetadataSession) -> None:
        session.watch(paths.CONFIG_CHANGES, self._follow_soon)
        names = await session.children(paths.CONFIG_CHANGES)
        is_there = self._seen in names if self._seen else not names
        await self._follow()
        if not is_there:  # it was deleted, and perhaps others after it
            for entity in await all_entities(session):
                await self._apply(entity)

    def _follow_soon(self, _event: Event) -> None:
        parts = self._parts
        task = parts.loop.create_task(self._follow_or_wait())
        parts.background.add(task)
        task.add_done_callback(parts.background.discard)

    async def _follow_or_wait(self) -> None:
        try:
            await self._follow()
        except MetadataError as error:  # the next session or event continues
            logger.warning("changed settings cannot be read now: %s", error)

    async def _follow(self) -> None:
        """MetadataError if the tree is unreachable. The next call follows what was not applied."""
        async with self._turn:
            session = self._parts.session
            names = await session.children(paths.CONFIG_CHANGES)
            applied: set[str] = set()  # entities already read: what was read is newer than all their notifications
            for name in [name for name in names if name > self._seen]:
                entity = await read_notice(session, name)
                if entity and entity not in applied:
                    await self._apply(entity)
                    applied.add(entity)
                self._seen = name
            if applied:
                await self._forget_old(names)

    async def _apply(self, entity: str) -> None:
        kind, _, name = entity.partition("/")
        try:
            await self.apply(kind, name)
        except (ConnectionLostError, SessionExpiredError):
            raise
        except CorruptNodeError as error:
            logger.error("%s is ignored: %s", paths.config(kind, name), error)
        except Exception:
            logger.exception("the changed settings of %s could not be applied", entity)

    async def _forget_old(self, names: list[str]) -> None:
        session = self._parts.session
        oldest = self._parts.clock_ms() - KEPT_MS
        for name in names:
            path = f"{paths.CONFIG_CHANGES}/{name}"
            stat = await session.exists(path)
            if stat is None or stat.created_ms > oldest:
                return
            try:
                await session.delete(path)
            except NoNodeError:
                pass

    async def apply(self, kind: str, entity: str) -> None:
        """Put the settings of an entity in the tree in force."""
        parts = self._parts
        config = await read_config(parts.session, kind, entity)
        if kind == "topics":
            if parts.image.change_topic_config(entity, config):
                parts.replicas.reconfigure(entity)
            if config.get(UNCLEAN_LEADER_ELECTION_ENABLE.name) == "true":
                self._elect()
        elif kind == "brokers" and entity in (paths.DEFAULT_ENTITY, str(parts.node_id)):
            level = Level.ALL_BROKERS if entity == paths.DEFAULT_ENTITY else Level.THIS_BROKER
            if parts.config.overlay(level) != config:
                for refused in parts.config.restore(level, config):
                    logger.error("a changed setting is ignored: %s", refused)
                await in_turns(parts.replicas.reconfigure_all())
            if parts.config.current[UNCLEAN_LEADER_ELECTION_ENABLE]:
                self._elect()
        elif kind == "groups":
            self._take_group(entity, config)
        elif kind == "ips":
            take_address(parts.address_rates, entity, config)
        elif kind in ("users", "clients"):
            take_quotas(parts.quotas, kind, entity, config)
            if kind == "users" and "/" not in entity:
                parts.credentials.take(paths.plain(entity), config)

    def _elect(self) -> None:
        """Where a leader is missing, one outside the ISR may lead now. A broker that is alone has no other replica."""
        if self._parts.engine is None:
            from ixion.broker.controller.cluster.controller import ClusterController

            if isinstance(self._parts.controller, ClusterController):
                self._parts.controller.elect_soon()

    def _take_group(self, entity: str, config: dict[str, str]) -> None:
        """Take the settings of a group, without the invalid ones: another program may have written them."""
        parts = self._parts
        taken = dict(config)
        while taken:
            try:
                check_group(parts.config.current, taken)
                break
            except InvalidSettingError as error:
                logger.error("a setting of group %s is ignored: %s", paths.plain(entity), error)
                if taken.pop(error.name, None) is None:
                    taken.clear()
        parts.image.group_configs.pop(paths.plain(entity), None)
        if taken:
            parts.image.group_configs[paths.plain(entity)] = taken


async def all_entities(session: MetadataSession) -> list[str]:
    """Every entity with settings, as notifications name it."""
    entities = []
    for kind in KINDS:
        for name in await children(session, f"{paths.CONFIG}/{kind}"):
            entities.append(f"{kind}/{name}")
            if kind == "users":
                clients = await children(session, f"{paths.CONFIG}/users/{name}/clients")
                entities += [f"users/{name}/clients/{client_id}" for client_id in clients]
    return entities


async def read_notice(session: MetadataSession, name: str) -> str:
    """The entity that has changed; empty if the notification is gone or cannot be read."""
    path = f"{paths.CONFIG_CHANGES}/{name}"
    try:
        return decode_config_change((await session.get(path)).data)
    except NoNodeError:
        return ""
    except CorruptNodeError as error:
        logger.error("the notice at %s is ignored: %s", path, error)
        return ""
