"""Creates and deletes topics, and adds partitions to them.

A change is planned, written to the tree, and sent to the broker (`own_broker`): its disks first, its cluster image
last. So a client that sees a topic can use it, and after a crash in between the next start continues from the tree.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

from ixion.broker.controller.configs import warn_without_effect
from ixion.broker.controller.own_broker import OwnBroker
from ixion.broker.controller.planning import (
    Names,
    NewTopic,
    check_partitions_of_request,
    partitions_of,
    plan_growth,
    plan_topic,
)
from ixion.broker.controller.queue import ChangeQueue
from ixion.broker.controller.topic_nodes import operations_to_add, operations_to_delete, steps_to_create, topic_node
from ixion.broker.metadata import paths
from ixion.broker.metadata.ensure import ensure
from ixion.broker.metadata.errors import StoreUnusableError
from ixion.broker.metadata.image import ClusterImage, TopicImage
from ixion.broker.metadata.node import Operation, Set
from ixion.broker.metadata.session import MetadataSession
from ixion.broker.metadata.topic_node import encode_topic
from ixion.config.cluster_settings import DELETE_TOPIC_ENABLE
from ixion.config.dynamic import DynamicConfig
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.timer.turns import Pauses, Steps, in_turns

logger = logging.getLogger(__name__)


Charge = Callable[[int], None]  # charges this many changed partitions; KafkaError if a quota refuses them


def free(_count: int) -> None:
    """Charges nothing: no quota applies."""


@dataclass(slots=True, kw_only=True, eq=False)
class TopicOutcome:
    """The outcome for one topic of a request."""

    name: str
    code: ErrorCode = ErrorCode.NONE
    message: str | None = None
    topic: TopicImage | None = None


class Topics:
    def __init__(
        self,
        queue: ChangeQueue,
        session: MetadataSession,
        image: ClusterImage,
        own: OwnBroker,
        config: DynamicConfig,
    ) -> None:
        self._queue = queue
        self._session = session
        self._image = image
        self._own = own
        self._config = config
        self.half_deleted: set[str] = set()  # logs are deleted, but the tree could not be written yet

    async def caught_up(self) -> None:
        """Returns at once: the image of a broker that is alone has every topic."""

    async def create(
        self, wanted: Sequence[NewTopic], validate_only: bool = False, charge: Charge = free
    ) -> list[TopicOutcome]:
        """An outcome for each topic, in their order. A refused topic does not affect the others."""
        return await self._queue.run(lambda: self._create(wanted, validate_only, charge))

    async def _create(self, wanted: Sequence[NewTopic], validate_only: bool, charge: Charge) -> list[TopicOutcome]:
        outcomes = [TopicOutcome(name=wish.name) for wish in wanted]
        await in_turns(self._plan(wanted, outcomes, free if validate_only else charge))
        made = [outcome.topic for outcome in outcomes if outcome.topic is not None]
        if made and not validate_only:
            await self._write(made)
            await self._own.take([(topic, topic.partitions) for topic in made], is_new=True)
        return outcomes

    def _plan(self, wanted: Sequence[NewTopic], outcomes: Sequence[TopicOutcome], charge: Charge) -> Steps[None]:
        settings = self._config.current
        brokers = sorted(self._image.brokers)
        names = Names((*self._image.topics, *self.half_deleted))
        counts = [partitions_of(wish, settings) for wish in wanted]
        refused = refusal_of(lambda: check_partitions_of_request(counts))
        full = refusal_of(self._own.disks.check_room)
        for wish, outcome in zip(wanted, outcomes, strict=True):
            fault = refused or refusal_of(partial(names.check, wish.name)) or full
            try:
                if fault is None:
                    topic = yield from plan_topic(wish, brokers, settings)
                    charge(len(topic.partitions))
                    outcome.topic = topic
                    names.add(wish.name)
            except KafkaError as error:
                fault = error
            if fault is not None:
                outcome.code = fault.code
                outcome.message = fault.message
            yield

    async def _write(self, topics: list[TopicImage]) -> None:
        operations: list[Operation] = []
        for topic in topics:
            warn_without_effect(topic.name, topic.config)
            configured = await self._session.exists(paths.config("topics", topic.name)) is not None
            operations += await in_turns(steps_to_create(topic, self._image.controller_epoch, configured))
        await self._session.multi(operations)

    async def delete(
        self, names: Sequence[str], ids: Mapping[str, bytes] | None = None, charge: Charge = free
    ) -> list[TopicOutcome]:
        """Delete by name. A topic in `ids` must still have that id: another of that name may have been created."""
        return await self._queue.run(lambda: self._delete_checked(names, ids, charge))

    async def _delete_checked(
        self, names: Sequence[str], ids: Mapping[str, bytes] | None, charge: Charge
    ) -> list[TopicOutcome]:
        outcomes = []
        doomed: dict[str, TopicImage] = {}
        for name in names:
            outcome = TopicOutcome(name=name)
            outcomes.append(outcome)
            topic = self._image.topics.get(name)
            if topic is None:
                outcome.code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            elif ids is not None and ids.get(name, topic.topic_id) != topic.topic_id:
                outcome.code = ErrorCode.UNKNOWN_TOPIC_ID
            elif not self._config.current[DELETE_TOPIC_ENABLE]:
                outcome.code = ErrorCode.TOPIC_DELETION_DISABLED
            elif charged(outcome, charge, len(topic.partitions)):
                doomed[name] = topic
        if doomed:
            gone = list(doomed)
            marks = [paths.delete_topic(name) for name in gone]
            await ensure(self._session, marks)
            await self._own.forget(list(doomed.values()))
            self.half_deleted.update(gone)
            await self.finish_deletions()
        return outcomes

    async def finish_deletions(self) -> None:
        """Delete the nodes of half-deleted topics, instead of leaving that to the next start."""
        for name in sorted(self.half_deleted):
            try:
                await self._session.multi(await operations_to_delete(self._session, name))
            except StoreUnusableError as error:
                logger.error("topic %s is not deleted yet: %s", name, error)
                return
            self.half_deleted.discard(name)

    async def create_partitions(
        self,
        name: str,
        count: int,
        assignment: Sequence[tuple[int, ...]] | None,
        validate_only: bool = False,
        charge: Charge = free,
    ) -> None:
        """Bring a topic to `count` partitions. KafkaError if that is not possible."""
        await self._queue.run(lambda: self._grow(name, count, assignment, validate_only, charge))

    async def _grow(
        self,
        name: str,
        count: int,
        assignment: Sequence[tuple[int, ...]] | None,
        validate_only: bool,
        charge: Charge,
    ) -> None:
        topics = self._image.topics
        added = await in_turns(plan_growth(topics, name, count, assignment, sorted(self._image.brokers)))
        self._own.disks.check_room()
        if validate_only:
            return
        charge(len(added))
        topic = topics[name]
        after = replace(topic, partitions=[*topic.partitions, *added])
        operations: list[Operation] = [Set(paths.topic(name), encode_topic(topic_node(after)))]
        pauses = Pauses()
        for partition in added:
            operations += operations_to_add(name, partition, self._image.controller_epoch)
            await pauses.pause()
        await self._session.multi(operations)
        await self._own.take([(topic, added)], is_new=True)


def charged(outcome: TopicOutcome, charge: Charge, count: int) -> bool:
    """Whether the quota allows `count` more changes; if not, sets the outcome."""
    fault = refusal_of(partial(charge, count))
    if fault is not None:
        outcome.code, outcome.message = fault.code, fault.message
    return fault is None


def refusal_of(check: Callable[[], None]) -> KafkaError | None:
    try:
        check()
    except KafkaError as error:
        return error
    return None
