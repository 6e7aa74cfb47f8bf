"""The controller: every change of topics, leaders and settings, one after the other.

A change goes through three places in this order: the tree, on the controller's own thread, because writing waits for a
disk; the logs, on the same thread; then, on the event loop, the cluster image and the replicas. So a client that is
told of a topic can use it, and a crash in between leaves the tree as the truth from which the next start goes on.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import TypeVar

from ixion.config.cluster_settings import DELETE_TOPIC_ENABLE
from ixion.config.dynamic import DynamicConfig
from ixion.config.ineffective import topic_settings_without_effect
from ixion.controller.election import Elected, elect
from ixion.controller.leaders import elect_leader, without_leader
from ixion.controller.planning import Names, check_partitions_of_request, partitions_of, plan_growth, plan_topic
from ixion.controller.topics import (
    NewTopic,
    TopicOutcome,
    operations_to_add,
    operations_to_change_state,
    operations_to_configure,
    operations_to_create,
    operations_to_delete,
    read_config,
    read_topic,
    topic_node,
)
from ixion.log.manager import LogManager
from ixion.log.together import for_each
from ixion.metadata import paths
from ixion.metadata.cluster_node import encode_features
from ixion.metadata.ensure import ensure
from ixion.metadata.errors import MetadataError, StoreUnusableError
from ixion.metadata.image import ClusterImage, PartitionImage, TopicImage
from ixion.metadata.node import Operation, Set
from ixion.metadata.session import MetadataSession
from ixion.metadata.topic_node import encode_topic
from ixion.model.errors import ErrorCode, KafkaError
from ixion.model.ids import new_id
from ixion.replica.log_settings import log_config
from ixion.replica.manager import ReplicaManager
from ixion.replica.partition import Key, Partition
from ixion.timer.turns import Steps, in_turns

logger = logging.getLogger(__name__)

T = TypeVar("T")


class Controller:
    def __init__(
        self,
        node_id: int,
        session: MetadataSession,
        image: ClusterImage,
        replicas: ReplicaManager,
        logs: LogManager,
        config: DynamicConfig,
        clock_ms: Callable[[], int],
    ) -> None:
        self._node_id = node_id
        self._session = session
        self._image = image
        self._replicas = replicas
        self._logs = logs
        self._config = config
        self._clock_ms = clock_ms
        self._thread = ThreadPoolExecutor(1, "controller")
        self._turn = asyncio.Lock()
        self._half_deleted: set[str] = set()  # their logs are gone; the tree could not be written yet
        self.on_config_change: Callable[[str, str], Awaitable[None]] | None = None  # kind, entity
        self.on_topics_deleted: list[Callable[[list[str]], None]] = []
        replicas.on_isr_wanted = self._isr_wanted

    @property
    def epoch(self) -> int:
        return self._image.controller_epoch

    async def in_thread(self, work: Callable[[], T]) -> T:
        """Work on the tree, after everything that was begun before. KafkaError once the controller has stopped."""
        try:
            pending = asyncio.get_running_loop().run_in_executor(self._thread, work)
        except RuntimeError as error:  # the executor has been shut down
            raise KafkaError(ErrorCode.NOT_CONTROLLER, "the broker is stopping") from error
        return await pending

    # The start.

    async def start(self, unclean: bool) -> None:
        """Become the controller, finish what was begun, bring every partition of this broker online.

        `unclean`: the broker did not stop as it should have. Then what the disk has may be less than clients saw, and
        every partition gets a new epoch, by which they can tell.
        """
        elected, topics, changed = await self.in_thread(lambda: self._take_over(unclean))
        image = self._image
        image.controller_id = elected.controller_id
        image.controller_epoch = elected.epoch
        for topic in topics:
            image.put_topic(topic)
            for partition in topic.partitions:
                self._bring_online(topic, partition)
        logger.info(
            "controller %d, epoch %d: %d topics, %d new leaders",
            elected.controller_id,
            elected.epoch,
            len(topics),
            changed,
        )

    def _take_over(self, unclean: bool) -> tuple[Elected, list[TopicImage], int]:
        session = self._session
        elected = elect(session, self._node_id, self._clock_ms())
        ensure(session, [paths.DELETE_TOPICS])
        doomed = session.children(paths.DELETE_TOPICS)
        self._delete_logs(frozenset(doomed))
        for name in doomed:
            session.multi(operations_to_delete(session, name))
        topics = []
        operations: list[Operation] = []
        live = tuple(self._image.brokers)
        for name in session.children(paths.TOPICS):
            found = read_topic(session, name)
            if found is None:
                continue
            topic, missing = found
            if not topic.topic_id:
                topic.topic_id = new_id()
                operations.append(Set(paths.topic(name), encode_topic(topic_node(topic))))
            for number, partition in enumerate(topic.partitions):
                if partition.leader in live and not unclean:
                    continue
                wished = elect_leader(partition, live)
                if wished is None:  # nobody can lead it: it waits, without a leader
                    gone = tuple(broker for broker in partition.replicas if broker not in live)
                    wished = partition if partition.leader < 0 else without_leader(partition, gone)
                topic.partitions[number] = wished
                if number in missing:
                    operations += operations_to_add(name, wished, elected.epoch)
                elif wished is not partition:
                    operations.append(operations_to_change_state(name, wished, elected.epoch))
            topics.append(topic)
        if operations:
            session.multi(operations)
        self._set_strays_aside(topics)
        return elected, topics, len(operations)

    def _set_strays_aside(self, topics: list[TopicImage]) -> None:
        """Logs of no topic, or of an earlier topic of that name. They are somebody's data: nothing is deleted."""
        known = {topic.name: topic for topic in topics}
        for (name, number), log in list(self._logs.logs.items()):
            topic = known.get(name)
            if topic is not None and number < len(topic.partitions) and log.topic_id in (None, topic.topic_id):
                continue
            try:
                logger.warning("%s belongs to no topic; it is kept as %s", log.name, self._logs.set_aside(name, number))
            except KafkaError as error:
                logger.error("%s belongs to no topic, and cannot be set aside: %s", log.name, error)

    def _bring_all_online(self, topic: TopicImage, partitions: Sequence[PartitionImage]) -> Steps[None]:
        for partition in partitions:
            self._bring_online(topic, partition)
            yield

    def _bring_online(self, topic: TopicImage, partition: PartitionImage) -> None:
        if partition.leader != self._node_id:
            return
        try:
            self._replicas.lead(
                topic.name,
                partition.number,
                topic.topic_id,
                partition.leader_epoch,
                partition.isr,
                partition.replicas,
            )
        except KafkaError as error:
            logger.error("%s-%d stays offline: %s", topic.name, partition.number, error)
            self._replicas.offline.add((topic.name, partition.number))

    async def bring_back(self) -> None:
        """Finish what had to wait for room or for file descriptors: partitions offline, topics half deleted."""
        async with self._turn:
            if self._half_deleted:
                await self.in_thread(self._finish_deletions)
            waiting: list[tuple[TopicImage, PartitionImage]] = []
            for name, number in sorted(self._replicas.offline):
                partition = self._image.partition(name, number)
                if partition is not None and partition.leader == self._node_id:
                    waiting.append((self._image.topics[name], partition))
            if not waiting:
                return
            if await self.in_thread(lambda: self._open_again(waiting)):
                for topic, partition in waiting:
                    if self._logs.get(topic.name, partition.number) is not None:
                        self._bring_online(topic, partition)
                    if (topic.name, partition.number) not in self._replicas.offline:
                        logger.warning("%s-%d is online again", topic.name, partition.number)

    def _open_again(self, waiting: Sequence[tuple[TopicImage, PartitionImage]]) -> bool:
        """Whether any of the logs is there now."""
        self._logs.load_missing()
        found = False
        for topic, partition in waiting:
            try:
                self._logs.create(topic.name, partition.number, topic.topic_id)
                found = True
            except KafkaError:
                continue  # it was logged when it went offline
        return found

    # Topics.

    async def create_topics(self, wanted: Sequence[NewTopic], validate_only: bool = False) -> list[TopicOutcome]:
        """An outcome for each, in their order. One that is refused does not hold up the others."""
        async with self._turn:
            outcomes = [TopicOutcome(name=wish.name) for wish in wanted]
            await in_turns(self._plan(wanted, outcomes))
            made = [outcome.topic for outcome in outcomes if outcome.topic is not None]
            if made and not validate_only:
                await self.in_thread(lambda: self._create(made))
                for topic in made:
                    self._image.put_topic(topic)
                    await in_turns(self._bring_all_online(topic, topic.partitions))
            return outcomes

    def _plan(self, wanted: Sequence[NewTopic], outcomes: Sequence[TopicOutcome]) -> Steps[None]:
        settings = self._config.current
        brokers = sorted(self._image.brokers)
        names = Names((*self._image.topics, *self._half_deleted))
        counts = [partitions_of(wish, settings) for wish in wanted]
        refused = refusal_of(lambda: check_partitions_of_request(counts))
        full = refusal_of(self._logs.check_room)
        for wish, outcome in zip(wanted, outcomes, strict=True):
            fault = refused or refusal_of(partial(names.check, wish.name)) or full
            try:
                if fault is None:
                    outcome.topic = yield from plan_topic(wish, brokers, settings)
                    names.add(wish.name)
            except KafkaError as error:
                fault = error
            if fault is not None:
                outcome.code = fault.code
                outcome.message = fault.message
            yield

    def _create(self, topics: list[TopicImage]) -> None:
        operations: list[Operation] = []
        for topic in topics:
            warn_without_effect(topic.name, topic.config)
            configured = self._session.exists(paths.config("topics", topic.name)) is not None
            operations += operations_to_create(topic, self.epoch, configured)
        self._session.multi(operations)
        self._make_logs([(topic, partition) for topic in topics for partition in topic.partitions])

    def _make_logs(self, wanted: Sequence[tuple[TopicImage, PartitionImage]]) -> None:
        # The image has the topics only after this, so the logs are told their settings here.
        topics = {topic.name: topic for topic, _ in wanted}
        settings = {name: log_config(self._config.current, topic.config) for name, topic in topics.items()}

        def make(each: tuple[TopicImage, PartitionImage]) -> None:
            topic, partition = each
            self._logs.create(topic.name, partition.number, topic.topic_id, config=settings[topic.name])

        for (topic, partition), error in for_each([each for each in wanted if each[1].leader == self._node_id], make):
            logger.error("the log of %s-%d cannot be made: %s", topic.name, partition.number, error)

    async def delete_topics(self, names: Sequence[str], ids: Mapping[str, bytes] | None = None) -> list[TopicOutcome]:
        """By name. A topic in `ids` must still have that id: one of the same name may have been made meanwhile."""
        async with self._turn:
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
                else:
                    doomed[name] = topic
            if doomed:
                gone = list(doomed)
                await self.in_thread(lambda: ensure(self._session, [paths.delete_topic(name) for name in gone]))
                await in_turns(self._take_out(doomed.values()))
                await self.in_thread(lambda: self._delete(gone))
                for told in self.on_topics_deleted:
                    told(gone)
            return outcomes

    def _take_out(self, topics: Iterable[TopicImage]) -> Steps[None]:
        """From the image, so that nobody finds them any more, and then their partitions."""
        for topic in topics:
            self._image.remove_topic(topic.name)
        for topic in topics:
            for partition in topic.partitions:
                self._replicas.stop(topic.name, partition.number, delete=False)
                yield

    def _delete(self, names: list[str]) -> None:
        self._delete_logs(frozenset(names))
        self._half_deleted.update(names)
        self._finish_deletions()

    def _finish_deletions(self) -> None:
        """The tree says that these topics are to go, so the next start would delete them; better now."""
        for name in sorted(self._half_deleted):
            try:
                self._session.multi(operations_to_delete(self._session, name))
            except StoreUnusableError as error:
                logger.error("topic %s is not deleted yet: %s", name, error)
                return
            self._half_deleted.discard(name)

    @property
    def has_more_to_do(self) -> bool:
        """Whether `bring_back` may find something to do."""
        return bool(self._replicas.offline or self._half_deleted)

    def _delete_logs(self, names: frozenset[str]) -> None:
        doomed = [key for key in list(self._logs.logs) if key[0] in names]
        for _, error in for_each(doomed, lambda key: self._logs.delete(*key)):
            logger.error("%s", error)

    async def create_partitions(
        self, name: str, count: int, assignment: Sequence[tuple[int, ...]] | None, validate_only: bool = False
    ) -> None:
        """Bring a topic to `count` partitions. KafkaError if that cannot be."""
        async with self._turn:
            topics = self._image.topics
            added = await in_turns(plan_growth(topics, name, count, assignment, sorted(self._image.brokers)))
            self._logs.check_room()
            if validate_only:
                return
            topic = topics[name]
            after = replace(topic, partitions=[*topic.partitions, *added])

            def write() -> None:
                operations: list[Operation] = [Set(paths.topic(name), encode_topic(topic_node(after)))]
                for partition in added:
                    operations += operations_to_add(name, partition, self.epoch)
                self._session.multi(operations)
                self._make_logs([(after, partition) for partition in added])

            await self.in_thread(write)
            self._image.put_topic(after)
            await in_turns(self._bring_all_online(after, added))

    # Leaders.

    async def elect_leaders(self, keys: Sequence[Key], unclean: bool) -> dict[Key, ErrorCode]:
        """Let the preferred replica lead again; `unclean`: give a partition without a leader one, at any price."""
        async with self._turn:
            outcomes, changes = await in_turns(self._elect(keys, unclean))
            await self._change_states(changes)
            return outcomes

    def _elect(
        self, keys: Sequence[Key], unclean: bool
    ) -> Steps[tuple[dict[Key, ErrorCode], list[tuple[str, PartitionImage]]]]:
        outcomes: dict[Key, ErrorCode] = {}
        changes: list[tuple[str, PartitionImage]] = []
        live = tuple(self._image.brokers)
        for name, number in keys:
            yield
            partition = self._image.partition(name, number)
            if partition is None:
                outcomes[name, number] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            elif partition.leader >= 0 and (unclean or partition.leader == partition.preferred):
                outcomes[name, number] = ErrorCode.ELECTION_NOT_NEEDED
            elif not unclean and (partition.preferred not in live or partition.preferred not in partition.isr):
                outcomes[name, number] = ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE
            else:
                usable = [broker for broker in live if broker not in partition.offline]
                after = elect_leader(partition, usable, unclean)
                if after is None:
                    outcomes[name, number] = ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE
                else:
                    outcomes[name, number] = ErrorCode.NONE
                    changes.append((name, after))
        return outcomes, changes

    async def _change_states(self, changes: list[tuple[str, PartitionImage]]) -> None:
        if not changes:
            return
        epoch = self.epoch

        def write() -> None:
            self._session.multi([operations_to_change_state(name, partition, epoch) for name, partition in changes])

        await self.in_thread(write)
        await in_turns(self._take_states(changes))

    def _take_states(self, changes: list[tuple[str, PartitionImage]]) -> Steps[None]:
        for name, partition in changes:
            if name in self._image.topics:
                self._image.put_partition(name, partition)
                self._bring_online(self._image.topics[name], partition)
                self._replicas.wake_all((name, partition.number))
            yield

    async def directory_failed(self, path: str) -> None:
        """A log directory of this broker went offline: its partitions have no leader here any more."""
        async with self._turn:
            changes = []
            for name, number in self._replicas.directory_failed(path):
                partition = self._image.partition(name, number)
                if partition is not None and partition.leader == self._node_id:
                    changes.append((name, without_leader(partition, (self._node_id,))))
            await self._change_states(changes)

    def _isr_wanted(self, partition: Partition, isr: tuple[int, ...]) -> None:
        task = asyncio.get_running_loop().create_task(self._change_isr(partition, isr))
        task.add_done_callback(_report)

    async def _change_isr(self, partition: Partition, isr: tuple[int, ...]) -> None:
        known = self._image.partition(*partition.key)
        if known is None or known.leader_epoch != partition.leader_epoch:
            return
        after = replace(known, isr=isr)
        operation = operations_to_change_state(partition.topic, after, self.epoch)
        try:
            await self.in_thread(lambda: self._session.multi([operation]))
        except MetadataError:
            partition.set_isr(partition.isr)
            raise
        self._image.put_partition(partition.topic, after)
        if partition.set_isr(isr):
            self._replicas.high_watermark_moved(partition)

    # Settings.

    async def alter_config(
        self, kind: str, entity: str, change: Callable[[dict[str, str]], Mapping[str, str]], validate_only: bool = False
    ) -> None:
        """Make what `change` makes of an entity's settings all of them. In force when this returns.

        `change` checks what it returns; what it raises goes to the caller, and nothing is changed.
        """
        async with self._turn:
            session = self._session
            current = await self.in_thread(lambda: read_config(session, kind, entity))
            wanted = change(dict(current))
            if validate_only:
                return
            if kind == "topics":
                changed = {name: value for name, value in wanted.items() if current.get(name) != value}
                warn_without_effect(entity, changed)

            def write() -> None:
                ensure(session, [f"{paths.CONFIG}/{kind}", paths.CONFIG_CHANGES])
                exists = session.exists(paths.config(kind, entity)) is not None
                session.multi(operations_to_configure(kind, entity, wanted, exists))

            await self.in_thread(write)
            if self.on_config_change is not None:
                await self.on_config_change(kind, entity)

    async def change_features(self, change: Callable[[dict[str, int]], dict[str, int]]) -> None:
        """Put other levels of features in force; what `change` raises goes to the caller, and nothing is changed."""
        async with self._turn:
            wanted = change(dict(self._image.features))
            if wanted != self._image.features:
                data = encode_features(wanted)
                stat = await self.in_thread(lambda: self._session.set(paths.FEATURES, data))
                self._image.features = wanted
                self._image.features_epoch = stat.version
                self._image.version += 1

    def stop(self) -> None:
        self._thread.shutdown(wait=True)


def refusal_of(check: Callable[[], None]) -> KafkaError | None:
    try:
        check()
    except KafkaError as error:
        return error
    return None


def warn_without_effect(topic: str, config: Mapping[str, str]) -> None:
    idle = topic_settings_without_effect(config)
    if idle:
        logger.warning("topic %s: set, but without effect in ixion: %s", topic, ", ".join(idle))


def _report(task: asyncio.Task[None]) -> None:
    if not task.cancelled() and task.exception() is not None:
        logger.error("changing the in-sync replicas failed", exc_info=task.exception())
