"""Replaces an expired session: opens a new one, registers again, and sets the watches again.

ZooKeeper ends a session that it has not heard from for zookeeper.session.timeout.ms, because the process was paused or
cut off. Partitions keep serving meanwhile; only their in-sync replicas cannot change. The order:

1. The controller part resigns, and its queued changes are dropped. Only then is a new session opened, so that nothing
   of an old controller can be written with it.
2. A new session, retried without a limit.
3. The registration, with a new broker epoch (`registering` knows the node of the old session).
4. The election, and the watches of the controller part.
5. Changes of settings and access rules that were missed (`Parts.on_new_session`).

If a step fails, or the new session expires meanwhile, that session is closed and everything begins again at 1. Only
another broker with the same id ends this one.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from functools import partial
from typing import TYPE_CHECKING, Final

from ixion.broker.metadata.errors import MetadataError, StoreUnusableError
from ixion.broker.metadata.session import MetadataSession
from ixion.broker.startup.errors import StartupError
from ixion.broker.startup.registering import register
from ixion.language.model.errors import KafkaError

if TYPE_CHECKING:
    from ixion.broker.controller.cluster.controller import ClusterController
    from ixion.broker.startup.parts import Parts

logger = logging.getLogger(__name__)

PAUSE_S: Final = 0.5


class Renewal:
    def __init__(
        self,
        parts: Parts,
        controller: ClusterController,
        open_session: Callable[[], Awaitable[MetadataSession]],
    ) -> None:
        self._parts = parts
        self._controller = controller
        self._open_session = open_session
        self._task: asyncio.Task[None] | None = None
        self._stopped = False
        self._again = False  # the new session has expired too
        self.renewed = 0  # how many sessions were replaced

    def expired(self) -> None:
        """Call this when the session of the broker has expired."""
        if self._task is None and not self._stopped:
            logger.warning("the ZooKeeper session has expired: this broker is not registered; opening a new one")
            self._parts.registered_ms = None
            self._task = self._parts.loop.create_task(self._renew(), name="session-renewal")

    async def stop(self) -> None:
        self._stopped = True
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    async def _renew(self) -> None:
        parts = self._parts
        earlier: set[int] = set()  # all sessions that were tried: each may have left a registration
        while True:
            before = parts.session
            earlier.add(before.session_id)
            try:
                self._again = False
                await self._controller.end()
                parts.session = session = await self._open_session()
                session.on_expired(partial(self._expired_again, session))
                await register(parts, earlier)
                await self._controller.begin(session)
                for follow in parts.on_new_session:
                    await follow(session)
                if not self._again:
                    break
            except StartupError as error:
                logger.critical("%s; this one stops", error)
                parts.on_fatal()
                return
            except (MetadataError, StoreUnusableError, KafkaError) as error:
                logger.warning("no new ZooKeeper session yet: %s", error)
            except Exception:
                logger.exception("renewing the ZooKeeper session failed; trying again")
            if parts.session is not before:
                await self._give_up(parts.session)
            await asyncio.sleep(PAUSE_S)
        self._task = None
        self.renewed += 1
        logger.warning("registered again, with broker epoch %d", parts.broker_epoch)

    def _expired_again(self, session: MetadataSession) -> None:
        if session is self._parts.session:
            self._parts.registered_ms = None
            if self._task is None:
                self.expired()
            else:
                self._again = True

    async def _give_up(self, session: MetadataSession) -> None:
        """Close a failed session: its registration would look like another broker to the next session."""
        try:
            await session.close()
        except (MetadataError, StoreUnusableError) as error:
            logger.warning("a ZooKeeper session could not be closed: %s", error)
