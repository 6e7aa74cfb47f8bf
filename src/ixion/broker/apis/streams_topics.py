"""Makes the internal topics of streams groups, once for all members that wait for them.

After a failure the reason is repeated for `PAUSE_MS`, without another attempt: every heartbeat of every member would
make one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Final

from ixion.broker.apis.controller_calls import in_time
from ixion.broker.apis.services import Services
from ixion.broker.controller.planning import NewTopic
from ixion.broker.controller.topics import TopicOutcome
from ixion.broker.coordinators.group.streams.configure import InternalTopic, listed
from ixion.language.model.errors import ErrorCode, KafkaError

PATIENCE_MS: Final = 5_000  # of a heartbeat for its topics; clients wait for 30 s
PAUSE_MS: Final = 5_000
LOOK_S: Final = 0.02
MOST_FAILURES: Final = 1_000  # groups
MOST_LETTERS: Final = 1_000  # of a reason
LONG: Final = 255  # characters: a longer name of a group is not remembered

EXISTS: Final = (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)


class InternalTopics:
    def __init__(self, services: Services) -> None:
        self._create_topics = services.create_topics
        self._image = services.image
        self._timer = services.timer
        self._clock_ms = services.clock_ms
        self._running: dict[str, asyncio.Future[str]] = {}  # by group id: the reason of a failure, or nothing
        self._failed: dict[str, tuple[int, str]] = {}  # by group id: since when, and why

    async def ensure(self, group_id: str, missing: Sequence[InternalTopic], charge: Callable[[int], None]) -> str:
        """Why the topics could not be made; empty if they are there."""
        running = self._running.get(group_id)
        if running is not None:
            return await asyncio.shield(running)
        since_ms, why = self._failed.get(group_id, (0, ""))
        if why and 0 <= self._clock_ms() - since_ms < PAUSE_MS:
            return why
        done: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._running[group_id] = done
        why = "the broker has stopped"
        try:
            why = await self._make(missing, charge)
        finally:
            del self._running[group_id]
            done.set_result(why)
        self._failed.pop(group_id, None)
        if why and len(group_id) <= LONG:
            if len(self._failed) >= MOST_FAILURES:
                self._failed.clear()
            self._failed[group_id] = (self._clock_ms(), why)
        return why

    async def _make(self, missing: Sequence[InternalTopic], charge: Callable[[int], None]) -> str:
        wanted = [NewTopic(each.name, each.partitions, each.replication, config=each.config) for each in missing]
        until_ms = self._clock_ms() + PATIENCE_MS
        try:
            outcomes = await in_time(self._timer, PATIENCE_MS, self._create(wanted))
        except KafkaError as error:
            return f"Creation failed: {error.message}"[:MOST_LETTERS]
        bad = [f"{each.name} ({each.message or each.code.name})" for each in outcomes if each.code not in EXISTS]
        if bad:
            return f"Creation failed: {listed(bad)}"[:MOST_LETTERS]
        made = {each.name for each in outcomes if each.code is ErrorCode.NONE}
        charge(sum(each.partitions for each in missing if each.name in made))
        # In a cluster the topics are in the image of this broker a moment later.
        while not all(each.name in self._image.topics for each in missing) and self._clock_ms() < until_ms:
            await asyncio.sleep(LOOK_S)
        return ""

    async def _create(self, wanted: list[NewTopic]) -> list[TopicOutcome]:
        return await self._create_topics(wanted)
