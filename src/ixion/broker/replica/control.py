"""The door for the controller: carries out LeaderAndIsr, StopReplica and UpdateMetadata on this broker.

Only this module changes the cluster image and the roles of replicas. Requests of a controller on another broker come by
a socket (`apis.k04_leader_and_isr` and its neighbours); a controller on this broker calls these functions. Rules:

1. A request with a broker epoch older than ours was meant for an earlier start of this broker, and is refused
   (STALE_BROKER_EPOCH). A newer epoch is accepted: the controller may see our registration before we do.
2. A request of an older controller than the newest seen is refused as a whole (STALE_CONTROLLER_EPOCH). So is one with
   a controller epoch that the tree does not know, because accepting it would fence the real controller.
3. One request is carried out at a time, in the order of arrival.
4. A partition whose leader epoch is not newer than the one we have keeps its role (STALE_CONTROLLER_EPOCH for that
   partition), so a repeated request does nothing.
5. Steps that can fail come first: settings are read, logs are created. The epoch is stored with the role, last. So a
   request that ends half-way can be repeated.
6. A fetcher is stopped before the role of its partition changes, and started after.
7. The first UpdateMetadata of a controller, and the first after a registration, names all topics that there are, and
   none that was deleted meanwhile. Such a deletion may not have reached this broker: it slept until its session had
   expired, or the controller was lost before it had sent it to all. So topics that are not in the tree are dropped.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Sequence
from concurrent.futures import Executor
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple, Protocol

from ixion.broker.log.manager import LogManager
from ixion.broker.log.together import for_each
from ixion.broker.metadata.image import ClusterImage
from ixion.broker.replica.manager import ReplicaManager
from ixion.broker.replica.metadata_update import (
    NO_ID,
    known_topic,
    take_brokers,
    take_topics,
    topics_of,
    unknown_topics,
)
from ixion.broker.replica.partition import Partition
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.model.topic_name import is_topic_name
from ixion.language.model.topic_partition import TopicPartition
from ixion.timer.turns import Steps, in_turns

# Message tables are imported when they are first needed, so that a broker starts sooner.
if TYPE_CHECKING:
    from ixion.language.protocol.messages.k04_leader_and_isr import (
        LeaderAndIsrPartitionError,
        LeaderAndIsrPartitionState,
        LeaderAndIsrRequest,
        LeaderAndIsrResponse,
    )
    from ixion.language.protocol.messages.k05_stop_replica import (
        StopReplicaPartitionState,
        StopReplicaRequest,
        StopReplicaResponse,
    )
    from ixion.language.protocol.messages.k06_update_metadata import (
        UpdateMetadataRequest,
        UpdateMetadataResponse,
        UpdateMetadataTopicState,
    )

logger = logging.getLogger(__name__)

ANY_EPOCH: Final = -1  # of StopReplica: the controller does not know the leader epoch
MORE_FOLLOW: Final = 1  # of UpdateMetadata: the controller had too many partitions for one request
TOPIC_DELETED: Final = -2  # of StopReplica: the topic is being deleted, whatever the leader epoch
FULL: Final = 2  # type of UpdateMetadata: it names all topics of the cluster


class Fetchers(Protocol):
    """Copies the partitions that this broker follows from their leaders."""

    async def stop(self, keys: Collection[TopicPartition]) -> None:
        """Returns when nothing is appended to these partitions, or truncated, any more."""

    def start(self, partition: Partition) -> None:
        """Copy from the leader that the partition names."""


class NoFetchers:
    """For a broker that is alone."""

    async def stop(self, keys: Collection[TopicPartition]) -> None:
        """Does nothing: nothing is fetched."""

    def start(self, partition: Partition) -> None:
        raise AssertionError(f"{partition.log.name} cannot be followed without fetchers")


async def at_once() -> None:
    """For a metadata tree that never lags behind."""


class Role(NamedTuple):
    """What the controller wants this broker to do with one partition."""

    topic: str
    topic_id: bytes
    state: LeaderAndIsrPartitionState

    @property
    def key(self) -> TopicPartition:
        return (self.topic, self.state.partition_index)


class Control:
    def __init__(
        self,
        image: ClusterImage,
        replicas: ReplicaManager,
        logs: LogManager,
        *,
        broker_epoch: Callable[[], int],
        last_controller_epoch: Callable[[], Awaitable[int]],
        read_config: Callable[[str], Awaitable[dict[str, str]]],
        workers: Executor,
        catch_up: Callable[[], Awaitable[object]] = at_once,
        topic_names: Callable[[], Awaitable[Collection[str]]] | None = None,
    ) -> None:
        """`last_controller_epoch`, `read_config` (the settings of a topic) and `topic_names` read the tree. A server of
        ZooKeeper may lag behind; what is read after `catch_up` is at least as new as the request. A broker
        that is alone misses no deletion, and has no `topic_names`."""
        self.fetchers: Fetchers = NoFetchers()
        self.on_deleted: list[Callable[[list[str]], None]] = []  # called with deleted topics
        self.on_controller: list[Callable[[], None]] = []  # called when the image names a new controller
        self.prepare_to_lead: list[Callable[[str], None]] = []  # called with a topic, on a worker thread
        self._image = image
        self._replicas = replicas
        self._logs = logs
        self._broker_epoch = broker_epoch
        self._last_controller_epoch = last_controller_epoch
        self._read_config = read_config
        self._workers = workers
        self._catch_up = catch_up
        self._topic_names = topic_names
        self._told_by = (-1, -1)  # controller epoch and broker epoch of the last UpdateMetadata
        self._turn = asyncio.Lock()

    # UpdateMetadata.

    async def update_metadata(self, request: UpdateMetadataRequest) -> UpdateMetadataResponse:
        async with self._turn:
            fault = await self._fence("UpdateMetadata", request.controller_epoch, request.broker_epoch)
            if fault == ErrorCode.NONE:
                await self._update(request)
        from ixion.language.protocol.messages.k06_update_metadata import UpdateMetadataResponse

        return UpdateMetadataResponse(error_code=fault)

    async def _update(self, request: UpdateMetadataRequest) -> None:
        image = self._image
        topics = topics_of(request)
        told_by = (request.controller_epoch, request.broker_epoch)
        vanished = [] if told_by == self._told_by else await self._vanished_topics()
        await self._read_configs(unknown_topics(image, topics))
        image.controller_id = request.controller_id
        if told_by != self._told_by:
            for heard in self.on_controller:
                heard()
        before = image.brokers.keys()
        take_brokers(image, image.brokers[self._replicas.node_id], request.live_brokers)
        if before - image.brokers.keys():
            self._replicas.look_at_followers()
        deleted = [name for name in vanished if image.remove_topic(name) is not None]
        self._told_by = told_by
        deleted += await in_turns(take_topics(image, topics, image.early_configs))
        # The first request with topics names all of them, unless more follow. A request of type FULL may name none.
        named = bool(topics) and request.type != MORE_FOLLOW
        image.complete = image.complete or named or request.type == FULL
        await in_turns(self._wake_elections(topics))
        if deleted:
            for listener in self.on_deleted:
                listener(deleted)

    async def _vanished_topics(self) -> list[str]:
        """Topics of the image that the tree does not have (rule 7)."""
        if self._topic_names is None or not self._image.topics:
            return []
        await self._catch_up()
        present = await self._topic_names()
        return [name for name in self._image.topics if name not in present]

    def _wake_elections(self, topics: tuple[UpdateMetadataTopicState, ...]) -> Steps[None]:
        waiting = self._replicas.elect_leader_purgatory
        for topic in topics:
            for state in topic.partition_states:
                waiting.check_and_complete((topic.topic_name, state.partition_index))
                yield

    async def _read_configs(self, names: Collection[str]) -> None:
        """Read the settings of topics that are not in the image. The reads are sent together.

        Each answer goes into the image as it arrives, and answers arrive in the order of the reads. So a change
        (`startup.config_changes`) is read later, finds the settings that we have read, and replaces them. If we kept
        the answers until the last one, such a change would find no topic, and be lost.
        """
        wanted = list(dict.fromkeys(names))
        if not wanted:
            return
        await self._catch_up()
        if len(wanted) == 1:
            await self._read_early(wanted[0])
            return
        for fault in await asyncio.gather(*map(self._read_early, wanted), return_exceptions=True):
            if isinstance(fault, BaseException):
                raise fault

    async def _read_early(self, name: str) -> None:
        """The start of this broker has read them, too, and opened logs with what they were then. No notice will be
        news to the image after this."""
        config = await self._read_config(name)
        early = self._image.early_configs
        has_changed = early.get(name, config) != config
        early[name] = config
        if has_changed:
            self._replicas.reconfigure(name)

    def log_ends(self, keys: Sequence[TopicPartition]) -> dict[TopicPartition, tuple[int, int]]:
        """The last leader epoch and the end of each log; logs in an offline directory are left out."""
        ends = {key: self._replicas.end_of_log(*key) for key in keys}
        return {key: end for key, end in ends.items() if end is not None}

    # LeaderAndIsr.

    async def leader_and_isr(self, request: LeaderAndIsrRequest) -> LeaderAndIsrResponse:
        from ixion.language.protocol.messages.k04_leader_and_isr import LeaderAndIsrResponse

        async with self._turn:
            fault = await self._fence("LeaderAndIsr", request.controller_epoch, request.broker_epoch)
            if fault != ErrorCode.NONE:
                return LeaderAndIsrResponse(error_code=fault, partition_errors=(), topics=())
            roles = roles_of(request)
            codes = await self._take_roles(roles)
        return await in_turns(answer_about(roles, codes))

    async def _take_roles(self, roles: Sequence[Role]) -> dict[TopicPartition, ErrorCode]:
        codes = await in_turns(self._check_all(roles))
        accepted = [role for role in roles if codes[role.key] == ErrorCode.NONE]
        strange = [role.topic for role in accepted if known_topic(self._image, role.topic, role.topic_id) is None]
        await self._read_configs(strange)
        await self.fetchers.stop([role.key for role in accepted])
        unmade = [role for role in accepted if not self._logs.is_made(*role.key, role.topic_id)]
        led = {role.topic for role in accepted if role.state.leader == self._replicas.node_id}
        loop = asyncio.get_running_loop()
        for role, error in await loop.run_in_executor(self._workers, self._prepare, unmade, led):
            self._failed(role, error, codes)
        await in_turns(self._become(accepted, codes))
        return codes

    def _check_all(self, roles: Sequence[Role]) -> Steps[dict[TopicPartition, ErrorCode]]:
        codes: dict[TopicPartition, ErrorCode] = {}
        for role in roles:
            codes[role.key] = self._check(role)
            yield
        return codes

    def _check(self, role: Role) -> ErrorCode:
        """NONE if this broker takes the role."""
        if role.state.partition_index < 0 or not is_topic_name(role.topic):
            return ErrorCode.INVALID_TOPIC_EXCEPTION  # it would become the name of a folder
        state, log = role.state, self._logs.get(*role.key)
        if log is not None and role.topic_id != NO_ID and log.topic_id not in (None, role.topic_id):
            return ErrorCode.INCONSISTENT_TOPIC_ID
        if self._replicas.node_id not in state.replicas:
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        partition = self._replicas.partitions.get(role.key)
        if partition is not None and state.leader_epoch <= partition.leader_epoch:
            return ErrorCode.STALE_CONTROLLER_EPOCH
        return ErrorCode.NONE

    def _prepare(self, unmade: Sequence[Role], led: Collection[str]) -> list[tuple[Role, KafkaError]]:
        """The slow part, on a worker thread. Returns the roles whose logs could not be created."""
        failed = for_each(unmade, self._make_log, self._logs.make_pool)
        for topic in led:
            for prepare in self.prepare_to_lead:
                prepare(topic)
        return failed

    def _make_log(self, role: Role) -> None:
        """KafkaError if there is no log and none can be created."""
        if not role.state.is_new:
            self._logs.of(*role.key).check_none_offline()  # an empty log must not replace it
        self._logs.create(*role.key, None if role.topic_id == NO_ID else role.topic_id)

    def _become(self, roles: Sequence[Role], codes: dict[TopicPartition, ErrorCode]) -> Steps[None]:
        for role in roles:
            if codes[role.key] == ErrorCode.NONE:
                try:
                    self._take_role(role)
                except KafkaError as error:
                    self._failed(role, error, codes)
            yield

    def _take_role(self, role: Role) -> None:
        state, replicas = role.state, self._replicas
        if state.leader == replicas.node_id:
            replicas.lead(
                *(*role.key, role.topic_id, state.leader_epoch, state.isr, state.replicas),
                partition_epoch=state.partition_epoch,
                make_log=False,  # `_make_log` made it: if its disk has failed since, an empty log must not lead
            )
            return
        partition = replicas.follow(
            *(*role.key, role.topic_id, state.leader, state.leader_epoch, state.isr, state.replicas),
            partition_epoch=state.partition_epoch,
            make_log=False,
        )
        if state.leader >= 0:
            self.fetchers.start(partition)

    def _failed(self, role: Role, error: KafkaError, codes: dict[TopicPartition, ErrorCode]) -> None:
        logger.error("%s-%d stays offline: %s", *role.key, error)
        self._replicas.offline.add(role.key)
        codes[role.key] = ErrorCode.KAFKA_STORAGE_ERROR

    # Events of this broker.

    async def directory_failed(self, path: str) -> list[TopicPartition]:
        """A log directory went offline. Stops its replicas, and returns their partitions."""
        gone = self._replicas.directory_failed(path)
        await self.fetchers.stop(gone)
        return gone

    # StopReplica.

    async def stop_replica(self, request: StopReplicaRequest) -> StopReplicaResponse:
        from ixion.language.protocol.messages.k05_stop_replica import StopReplicaPartitionError, StopReplicaResponse

        async with self._turn:
            fault = await self._fence("StopReplica", request.controller_epoch, request.broker_epoch)
            if fault != ErrorCode.NONE:
                return StopReplicaResponse(error_code=fault, partition_errors=())
            codes = await self._stop(doomed_of(request))
        errors = tuple(
            StopReplicaPartitionError(topic_name=name, partition_index=number, error_code=code)
            for (name, number), code in codes.items()
        )
        return StopReplicaResponse(error_code=ErrorCode.NONE, partition_errors=errors)

    async def _stop(self, doomed: dict[TopicPartition, StopReplicaPartitionState]) -> dict[TopicPartition, ErrorCode]:
        codes = {key: self._may_stop(key, state) for key, state in doomed.items()}
        stopped = [key for key, code in codes.items() if code == ErrorCode.NONE]
        await self.fetchers.stop(stopped)
        deleted = [key for key in stopped if doomed[key].delete_partition]
        await in_turns(self._let_go(stopped, doomed))
        delete = partial(for_each, deleted, self._delete_log, self._logs.make_pool)
        for key, error in await asyncio.get_running_loop().run_in_executor(self._workers, delete):
            logger.error("%s-%d is not deleted: %s", *key, error)
            codes[key] = ErrorCode.KAFKA_STORAGE_ERROR
        return codes

    def _may_stop(self, key: TopicPartition, state: StopReplicaPartitionState) -> ErrorCode:
        partition = self._replicas.partitions.get(key)
        if partition is None or state.leader_epoch in (ANY_EPOCH, TOPIC_DELETED):
            return ErrorCode.NONE
        return ErrorCode.NONE if state.leader_epoch >= partition.leader_epoch else ErrorCode.FENCED_LEADER_EPOCH

    def _let_go(
        self, keys: Sequence[TopicPartition], doomed: dict[TopicPartition, StopReplicaPartitionState]
    ) -> Steps[None]:
        for key in keys:
            if doomed[key].delete_partition:
                self._replicas.stop(*key, delete=False)
                if doomed[key].leader_epoch < 0:  # else other replicas of the topic may stay
                    self._image.early_configs.pop(key[0], None)
            else:  # the replica stays, with its leader epoch
                partition = self._replicas.partitions.get(key)
                if partition is not None:
                    self._replicas.resign(partition)
            yield

    def _delete_log(self, key: TopicPartition) -> None:
        """Delete all logs of a partition: a later topic of the same name must not find its delayed records.

        KafkaError if one may be in a directory that is offline: the controller asks again after the next start.
        """
        logs = self._logs.of(*key)
        logs.check_none_offline()
        logs.delete()

    async def _fence(self, name: str, controller_epoch: int, broker_epoch: int) -> ErrorCode:
        own, image = self._broker_epoch(), self._image
        if 0 <= broker_epoch < own:
            logger.warning("%s for broker epoch %d refused: ours is %d", name, broker_epoch, own)
            return ErrorCode.STALE_BROKER_EPOCH
        if controller_epoch < image.controller_epoch:
            newest = image.controller_epoch
            logger.warning("%s of controller epoch %d refused: the newest is %d", name, controller_epoch, newest)
            return ErrorCode.STALE_CONTROLLER_EPOCH
        if controller_epoch > image.controller_epoch:
            await self._catch_up()
            newest = await self._last_controller_epoch()
            if controller_epoch > newest:
                logger.warning("%s of controller epoch %d refused: the tree has %d", name, controller_epoch, newest)
                return ErrorCode.STALE_CONTROLLER_EPOCH
            image.controller_epoch = controller_epoch
        return ErrorCode.NONE


def roles_of(request: LeaderAndIsrRequest) -> list[Role]:
    """Versions before 2 name the topic with each partition."""
    roles = [Role(state.topic_name, NO_ID, state) for state in request.ungrouped_partition_states]
    roles += [
        Role(topic.topic_name, topic.topic_id, state)
        for topic in request.topic_states
        for state in topic.partition_states
    ]
    return list({role.key: role for role in roles}.values())


def answer_about(roles: Sequence[Role], codes: dict[TopicPartition, ErrorCode]) -> Steps[LeaderAndIsrResponse]:
    """The response in the form of version 5 and later: by topic id."""
    from ixion.language.protocol.messages.k04_leader_and_isr import (
        LeaderAndIsrPartitionError,
        LeaderAndIsrResponse,
        LeaderAndIsrTopicError,
    )

    topics: dict[bytes, list[LeaderAndIsrPartitionError]] = {}
    for role in roles:
        number = role.state.partition_index
        error = LeaderAndIsrPartitionError(topic_name=role.topic, partition_index=number, error_code=codes[role.key])
        topics.setdefault(role.topic_id, []).append(error)
        yield
    by_topic = (
        LeaderAndIsrTopicError(topic_id=topic_id, partition_errors=tuple(errors)) for topic_id, errors in topics.items()
    )
    return LeaderAndIsrResponse(error_code=ErrorCode.NONE, partition_errors=(), topics=tuple(by_topic))


def doomed_of(request: StopReplicaRequest) -> dict[TopicPartition, StopReplicaPartitionState]:
    """The partitions to stop, in the form of version 3."""
    from ixion.language.protocol.messages.k05_stop_replica import StopReplicaPartitionState

    doomed = {
        (topic.topic_name, state.partition_index): state
        for topic in request.topic_states
        for state in topic.partition_states
    }
    older = [(each.topic_name, each.partition_index) for each in request.ungrouped_partitions]
    older += [(topic.name, number) for topic in request.topics for number in topic.partition_indexes]
    for name, number in older:
        delete = request.delete_partitions
        doomed[name, number] = StopReplicaPartitionState(partition_index=number, delete_partition=delete)
    return doomed
