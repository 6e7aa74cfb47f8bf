"""Model brokers under real controllers, on one tree in memory.

    league = League(3)
    await league.begin(1)                       # broker 1 is the controller
    await league.create("t", [[1, 2, 3]])
    await league.kill(1)
    league.check()                              # tree, roles and metadata agree, and the rules of the ISR hold

A model broker takes the requests of a controller as a real one does: it refuses old epochs and remembers the rest.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence

from ixion.broker.controller.cluster.batch import ControlRequest
from ixion.broker.controller.cluster.channels import ControlResponse
from ixion.broker.controller.cluster.cluster import Member
from ixion.broker.controller.cluster.controller import ClusterController
from ixion.broker.controller.cluster.term import Term
from ixion.broker.controller.door import LogEnds
from ixion.broker.controller.planning import NewTopic
from ixion.broker.metadata import paths
from ixion.broker.metadata.broker_node import Registration, encode_registration
from ixion.broker.metadata.embedded import IN_MEMORY, EmbeddedStore
from ixion.broker.metadata.ensure import ensure
from ixion.broker.metadata.image import ClusterImage
from ixion.broker.metadata.on_loop import EmbeddedEngine, LoopSession
from ixion.broker.metadata.topic_node import PartitionState, TopicNode, decode_partition_state, decode_topic
from ixion.config.dynamic import DynamicConfig
from ixion.config.listeners import Endpoint
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.model.topic_partition import TopicPartition
from ixion.language.protocol.messages.k04_leader_and_isr import (
    LeaderAndIsrPartitionError,
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    LeaderAndIsrTopicError,
)
from ixion.language.protocol.messages.k05_stop_replica import (
    StopReplicaPartitionError,
    StopReplicaRequest,
    StopReplicaResponse,
)
from ixion.language.protocol.messages.k06_update_metadata import UpdateMetadataRequest, UpdateMetadataResponse
from ixion.language.protocol.messages.k56_alter_partition import (
    AlterPartitionRequest,
    BrokerState,
    PartitionData,
    TopicData,
)

Shown = tuple[int, int, tuple[int, ...], int]  # leader, leader epoch, ISR, partition epoch


class ModelBroker:
    def __init__(self, league: League, broker_id: int, rack: str | None) -> None:
        self.broker_id = broker_id
        self._league = league
        self._rack = rack
        self.logs: set[TopicPartition] = set()
        self.ends: LogEnds = {}
        self.silent = False  # does not say where its logs end
        self.failed_disk: set[TopicPartition] = set()
        self.heard: list[ControlRequest] = []  # of all lives
        self.let_in = asyncio.Event()  # cleared: requests wait
        self.let_in.set()
        self.kept_since: int | None = None  # as it says when it registers; None: its logs may have lost records
        self.is_apache = False  # it says neither
        self.begin()

    def begin(self) -> None:
        """A new life: what was in memory is gone."""
        self.session = self._league.engine.open_session(60_000)
        self.roles: dict[TopicPartition, LeaderAndIsrPartitionState] = {}
        self.shown: dict[TopicPartition, Shown] = {}
        self.brokers: set[int] = set()
        self.epoch = -1
        self.controller_epoch = 0
        self.under_way = 0

    async def register(self) -> None:
        endpoint = Endpoint("PLAINTEXT", "h", self.broker_id)
        registration = Registration(
            endpoints=(endpoint,),
            timestamp_ms=0,
            rack=self._rack,
            kept_since=None if self.is_apache else self.kept_since,
            in_doubt=self.kept_since is None and not self.is_apache,
        )
        node = encode_registration(registration)
        await self.session.create(paths.broker(self.broker_id), node, ephemeral=True)
        stat = await self.session.exists(paths.broker(self.broker_id))
        assert stat is not None
        self.epoch = stat.created_zxid

    async def log_ends(self, keys: Sequence[TopicPartition]) -> LogEnds:
        if self.silent:
            raise KafkaError(ErrorCode.NETWORK_EXCEPTION, "it cannot be reached")
        return {key: self.ends[key] for key in keys if key in self.ends}

    async def carry(self, request: ControlRequest) -> ControlResponse:
        assert self.under_way == 0, "one request in flight"
        if self.epoch < 0:
            raise KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, "it is dead")
        life = self.session
        self.under_way += 1
        await self.let_in.wait()
        if life is not self.session:
            raise KafkaError(ErrorCode.NETWORK_EXCEPTION, "the connection ended with that life")
        self.under_way -= 1
        self.heard.append(request)
        code = ErrorCode.NONE
        if request.broker_epoch < self.epoch:
            code = ErrorCode.STALE_BROKER_EPOCH
        elif request.controller_epoch < self.controller_epoch:
            code = ErrorCode.STALE_CONTROLLER_EPOCH
        else:
            self.controller_epoch = request.controller_epoch
        if isinstance(request, UpdateMetadataRequest):
            if code is ErrorCode.NONE:
                self._show(request)
            return UpdateMetadataResponse(error_code=code)
        if isinstance(request, LeaderAndIsrRequest):
            topics = self._lead(request) if code is ErrorCode.NONE else ()
            return LeaderAndIsrResponse(error_code=code, topics=topics)
        errors = self._stop(request) if code is ErrorCode.NONE else ()
        return StopReplicaResponse(error_code=code, partition_errors=errors)

    def close(self) -> None:
        """There is no connection."""

    def _show(self, request: UpdateMetadataRequest) -> None:
        self.brokers = {broker.id for broker in request.live_brokers}
        for topic in request.topic_states:
            for each in topic.partition_states:
                key = (topic.topic_name, each.partition_index)
                if each.leader == -2:
                    self.shown.pop(key, None)
                else:
                    self.shown[key] = (each.leader, each.leader_epoch, each.isr, each.zk_version)

    def _lead(self, request: LeaderAndIsrRequest) -> tuple[LeaderAndIsrTopicError, ...]:
        answers = []
        for topic in request.topic_states:
            codes = []
            for each in topic.partition_states:
                key, code = (topic.topic_name, each.partition_index), ErrorCode.NONE
                assert self.broker_id in each.replicas, "a broker gets requests about its own replicas only"
                assert each.leader in (-1, *self.brokers), "the leader is known before it is followed"
                if key in self.failed_disk:
                    code = ErrorCode.KAFKA_STORAGE_ERROR
                elif key in self.roles and each.leader_epoch <= self.roles[key].leader_epoch:
                    code = ErrorCode.STALE_CONTROLLER_EPOCH
                else:
                    self.roles[key] = each
                    self.logs.add(key)
                codes.append(LeaderAndIsrPartitionError(partition_index=key[1], error_code=code))
            answers.append(LeaderAndIsrTopicError(topic_id=topic.topic_id, partition_errors=tuple(codes)))
        return tuple(answers)

    def _stop(self, request: StopReplicaRequest) -> tuple[StopReplicaPartitionError, ...]:
        errors = []
        for topic in request.topic_states:
            for each in topic.partition_states:
                key, code = (topic.topic_name, each.partition_index), ErrorCode.NONE
                role = self.roles.get(key)
                if role is not None and 0 <= each.leader_epoch < role.leader_epoch:
                    code = ErrorCode.FENCED_LEADER_EPOCH
                else:
                    self.roles.pop(key, None)
                    if each.delete_partition:
                        self.logs.discard(key)
                errors.append(StopReplicaPartitionError(topic_name=key[0], partition_index=key[1], error_code=code))
        return tuple(errors)


class League:
    def __init__(
        self, brokers: int, *, settings: Mapping[str, str] | None = None, racks: Sequence[str | None] = ()
    ) -> None:
        self.store = EmbeddedStore(IN_MEMORY)
        self.engine = EmbeddedEngine(self.store)
        self.outside = self.engine.open_session(3_600_000)  # of an observer
        self.config = DynamicConfig(settings or {})
        self.brokers: dict[int, ModelBroker] = {}
        for number in range(1, brokers + 1):
            self.brokers[number] = ModelBroker(self, number, racks[number - 1] if racks else None)
        self.controllers: dict[int, ClusterController] = {}
        self._epochs: dict[tuple[str, bytes, int], tuple[int, int]] = {}

    async def open(self) -> None:
        await ensure(self.outside, paths.BASE)
        for broker in self.brokers.values():
            await broker.register()

    async def begin(self, number: int, session: LoopSession | None = None) -> ClusterController:
        """The controller part of a broker takes part in elections."""
        made = ClusterController(
            number,
            session or self.brokers[number].session,
            ClusterImage(cluster_id="c"),
            self.config,
            lambda: 0,
            carrier_to=self._carrier_to,
            listener="PLAINTEXT",
        )
        self.controllers[number] = made
        await made.start(False)
        await self.settle()
        return made

    def _carrier_to(self, member: Member) -> ModelBroker:
        return self.brokers[member.broker_id]

    @property
    def term(self) -> Term:
        return self.controller.active()

    @property
    def controller(self) -> ClusterController:
        """The one that was elected last; an earlier one may not know that yet."""
        active = [each for each in self.controllers.values() if each.is_active]
        return max(active, key=lambda each: each.active().sender.controller_epoch)

    async def settle(self) -> None:
        """Until nothing more happens: events, changes, requests, answers."""
        for _ in range(6):
            for _ in range(20):
                await asyncio.sleep(0)
            if any(each.is_active for each in self.controllers.values()):
                term = self.term
                async with term.queue.turn:
                    pass
                for broker in list(term.cluster.brokers):
                    await term.channels.settled(broker)

    async def close(self) -> None:
        for controller in self.controllers.values():
            await controller.stop()
        self.engine.close()

    # What happens to brokers.

    async def kill(self, *numbers: int) -> None:
        for number in numbers:
            self.brokers[number].epoch = -1
            self.brokers[number].roles.clear()
            await self.brokers[number].session.close()
            controller = self.controllers.pop(number, None)
            if controller is not None:
                await controller.stop()
        await self.settle()

    async def restart(self, *numbers: int) -> None:
        for number in numbers:
            self.brokers[number].begin()
            await self.brokers[number].register()
        await self.settle()

    async def bounce(self, number: int) -> None:
        """Away and back before the controller can look."""
        await self.brokers[number].session.close()
        self.brokers[number].begin()
        await self.brokers[number].register()
        await self.settle()

    # What clients and brokers ask for.

    async def create(self, name: str, assignment: Sequence[Sequence[int]], **config: str) -> ErrorCode:
        wish = NewTopic(name=name, assignment={n: tuple(each) for n, each in enumerate(assignment)}, config=config)
        (outcome,) = await self.controller.topics.create([wish])
        await self.settle()
        return outcome.code

    async def propose(
        self, key: TopicPartition, isr: Sequence[int], epochs: Mapping[int, int] | None = None
    ) -> ErrorCode:
        """The leader of a partition asks for an ISR, with what it knows from LeaderAndIsr and its metadata."""
        state = await self.state(key)
        leader = self.brokers[state.leader]
        members = [BrokerState(broker_id=each, broker_epoch=(epochs or {}).get(each, -1)) for each in isr]
        partition = PartitionData(
            partition_index=key[1],
            leader_epoch=leader.roles[key].leader_epoch,
            new_isr_with_epochs=tuple(members),
            partition_epoch=leader.shown[key][3],
        )
        topic = TopicData(topic_id=self.term.cluster.topics[key[0]].topic_id, partitions=(partition,))
        request = AlterPartitionRequest(broker_id=state.leader, broker_epoch=leader.epoch, topics=(topic,))
        answer = await self.controller.isr.alter(request)
        await self.settle()
        if answer.error_code:
            return ErrorCode(answer.error_code)
        return ErrorCode(answer.topics[0].partitions[0].error_code)

    # What is so.

    async def state(self, key: TopicPartition) -> PartitionState:
        return decode_partition_state(*key, (await self.outside.get(paths.partition_state(*key))).data)

    async def topic(self, name: str) -> TopicNode:
        return decode_topic(name, (await self.outside.get(paths.topic(name))).data)

    async def check(self) -> None:
        """The rules that always hold once everything has settled."""
        live = {number for number, broker in self.brokers.items() if broker.epoch >= 0}
        doomed = self.term.cluster.doomed
        expected: dict[TopicPartition, Shown] = {}
        hosted: dict[int, set[TopicPartition]] = {number: set() for number in live}
        for name in await self.outside.children(paths.TOPICS):
            topic = await self.topic(name)
            for number, replicas in topic.partitions.items():
                key = (name, number)
                stat = await self.outside.exists(paths.partition_state(*key))
                if stat is None:
                    assert not live & set(replicas.all), f"{key} has live replicas and no state"
                    continue
                state = await self.state(key)
                assert set(state.isr) <= set(replicas.all), (key, state, replicas)
                assert state.isr, key
                assert state.leader == -1 or state.leader in state.isr, (key, state)
                before = self._epochs.get((name, topic.topic_id or b"", number), (-1, -1))
                now = (state.leader_epoch, stat.version)
                assert now >= before, f"{key}: epochs {before} -> {now}"
                self._epochs[name, topic.topic_id or b"", number] = now
                if name in doomed:
                    continue
                expected[key] = (state.leader, state.leader_epoch, state.isr, stat.version)
                assert state.leader == -1 or state.leader in live, f"{key} is led by a dead broker: {state}"
                if state.leader == -1 and set(state.isr) & live:
                    absent = {*state.isr, *state.eligible} - live
                    assert absent, f"{key} could have a leader: {state}, {live}"
                for broker in set(replicas.all) & live:
                    hosted[broker].add(key)
                    role = self.brokers[broker].roles.get(key)
                    assert role is not None, f"broker {broker} does not know that it has {key}"
                    assert (role.leader, role.leader_epoch) == (state.leader, state.leader_epoch), (broker, key)
        for number in live:
            assert self.brokers[number].brokers == live, number
            assert self.brokers[number].shown == expected, number
            assert set(self.brokers[number].roles) == hosted[number], number


async def until(holds: Callable[[], bool]) -> None:
    while not holds():
        await asyncio.sleep(0.001)
