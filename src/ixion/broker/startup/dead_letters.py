"""Brings dead letters of share groups to their topic, on any broker; creates it if that is allowed.

The topic must agree (`errors.deadletterqueue.group.enable`): a member that rejects a record writes there, without a
right to. A letter goes to the partition with the number of its record's, modulo their count.
"""

from __future__ import annotations

import asyncio
import logging
from functools import partial
from typing import TYPE_CHECKING, Final

from ixion.broker.controller.planning import NewTopic
from ixion.broker.replica.fair_workers import Work
from ixion.broker.share.letters import NO_COPIES, Copies, build, read_copies
from ixion.config import share_settings
from ixion.config.errors import InvalidSettingError
from ixion.config.share_group import check_dead_letter_topic
from ixion.config.topic import DEAD_LETTERS
from ixion.language.model.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from ixion.broker.replica.partition import Partition
    from ixion.broker.share.letter_writer import Written
    from ixion.broker.share.runs import Run
    from ixion.broker.share.terms import Terms
    from ixion.broker.startup.parts import Parts

logger = logging.getLogger(__name__)

BATCH_BYTES: Final = 256 << 10
AT_ONCE: Final = 32  # batches in memory
REFUSED: Final = frozenset({ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE, ErrorCode.INVALID_RECORD})


class DeadLetters:
    """Implements Post."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._turns = asyncio.Semaphore(AT_ONCE)
        self._tasks: set[asyncio.Task[None]] = set()

    def stop(self) -> None:
        for task in self._tasks:
            task.cancel()

    def send(self, partition: Partition, group: str, terms: Terms, owed: list[Run], done: Written) -> None:
        task = self._parts.loop.create_task(self._send(partition, group, terms, owed, done))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _send(self, source: Partition, group: str, terms: Terms, owed: list[Run], done: Written) -> None:
        written: list[Run] = []
        fault: KafkaError | None = None
        try:
            async with self._turns:
                written = await self._write(source, group, terms, owed)
        except KafkaError as error:
            fault = error
        except Exception as error:
            logger.exception("dead letters for %s cannot be written", source.log.name)
            fault = KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, repr(error))
        done(written, fault)

    async def _write(self, source: Partition, group: str, terms: Terms, owed: list[Run]) -> list[Run]:
        number = source.number % await self._partitions_of(terms.dead_letters)
        copies = await self._copies(source, owed) if terms.copies else NO_COPIES
        # What the topic refuses goes one by one; the letter of a record that is too large for it, without the copy.
        first = [owed[0].part(owed[0].first, owed[0].first)]
        for some, kept in ((owed, copies), (first, copies)):
            try:
                return await self._post(number, source, group, terms, some, kept)
            except KafkaError as error:
                if error.code not in REFUSED:
                    raise
        return await self._post(number, source, group, terms, first, NO_COPIES)

    async def _post(
        self, number: int, source: Partition, group: str, terms: Terms, owed: list[Run], copies: Copies
    ) -> list[Run]:
        from ixion.broker.startup.schedule_targets import schedule_targets

        now_ms, limit = self._parts.clock_ms(), terms.delivery_limit
        batch, written = build(source.topic, source.number, group, owed, limit, copies, now_ms, BATCH_BYTES)
        await schedule_targets(self._parts).send(terms.dead_letters, number, batch, len(written))
        return written

    async def _partitions_of(self, name: str) -> int:
        """KafkaError if no dead letters may go there now."""
        parts = self._parts
        current = parts.config.current
        try:
            check_dead_letter_topic(name, current[share_settings.DEAD_LETTER_PREFIX])
        except InvalidSettingError as error:
            raise KafkaError(ErrorCode.INVALID_CONFIG, str(error)) from error
        topic = parts.image.topics.get(name)
        if topic is None:
            if not current[share_settings.DEAD_LETTER_CREATES]:
                text = f"there is no topic {name}, and {share_settings.DEAD_LETTER_CREATES.name} is false"
                raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, text)
            await self._create(name)
            raise KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, f"the topic {name} is being created")
        config = parts.image.topic_config(name) or {}
        if not DEAD_LETTERS.parse(config.get(DEAD_LETTERS.name, "false")):
            raise KafkaError(ErrorCode.INVALID_CONFIG, f"the topic {name} has not set {DEAD_LETTERS.name}=true")
        return len(topic.partitions)

    async def _create(self, name: str) -> None:
        from ixion.broker.startup.topic_creation import create_topics

        config = {DEAD_LETTERS.name: "true", "message.timestamp.type": "CreateTime"}
        (outcome,) = await create_topics(self._parts, [NewTopic(name=name, config=config)])
        if outcome.code not in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS):
            raise KafkaError(outcome.code, f"the topic {name} cannot be created: {outcome.message}")

    async def _copies(self, source: Partition, owed: list[Run]) -> Copies:
        over: asyncio.Future[Copies] = asyncio.get_running_loop().create_future()

        def done(found: Copies | None, error: Exception | None, _used_ns: int) -> None:
            if over.done():
                return
            if error is None:
                over.set_result(found or NO_COPIES)
            else:
                over.set_exception(error)

        read = partial(read_copies, source.log, owed, BATCH_BYTES)
        self._parts.replicas.fair_workers.submit(Work(source.topic, 0, read, done))
        return await over
