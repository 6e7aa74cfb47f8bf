"""The door for the controller: fenced, one request at a time, repeatable, and the image follows it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Collection, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ixion.broker.log.config import LogConfig
from ixion.broker.log.prepare import Origin
from ixion.broker.metadata.errors import ConnectionLostError
from ixion.broker.metadata.image import BrokerImage, ClusterImage, TopicImage
from ixion.broker.replica import control, metadata_update
from ixion.broker.replica.control import MORE_FOLLOW, Control
from ixion.broker.replica.partition import Partition
from ixion.language.model.delay_names import sibling_of
from ixion.language.model.errors import ErrorCode
from ixion.language.model.topic_partition import TopicPartition
from ixion.language.protocol.messages.k04_leader_and_isr import (
    LeaderAndIsrPartitionState,
    LeaderAndIsrRequest,
    LeaderAndIsrTopicState,
)
from ixion.language.protocol.messages.k05_stop_replica import (
    StopReplicaPartitionState,
    StopReplicaRequest,
    StopReplicaTopicState,
)
from ixion.language.protocol.messages.k06_update_metadata import (
    UpdateMetadataBroker,
    UpdateMetadataEndpoint,
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)
from ixion.timer.turns import Steps
from tests.log.support import batch
from tests.replica.world import SELF, TOPIC_ID, World

OTHER_ID = bytes(reversed(range(16)))
BROKER_EPOCH = 70
CONTROLLER_EPOCH = 5  # that the tree has


class Noted:
    """Fetchers that only note what they are asked."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, TopicPartition, int]] = []

    async def stop(self, keys: Collection[TopicPartition]) -> None:
        self.calls += [("stop", key, -1) for key in keys]

    def start(self, partition: Partition) -> None:
        self.calls.append(("start", partition.key, partition.leader_id))


class Member:
    def __init__(self, world: World) -> None:
        self.world = world
        self.image = ClusterImage(cluster_id="c")
        self.image.brokers[SELF] = BrokerImage(broker_id=SELF, epoch=BROKER_EPOCH, endpoints={"PLAINTEXT": ("h", 1)})
        self.fetchers = Noted()
        self.threads = ThreadPoolExecutor(1)
        self.leading: list[tuple[str, int, int]] = []
        self.gone: list[str] = []
        self.in_tree = {"t"}
        self.looks = 0  # at the topics of the tree
        self.behind = True  # the server that answers reads does not know yet what the controller has written
        world.replicas.on_leadership.append(lambda *change: self.leading.append(change))
        self.control = Control(
            self.image,
            world.replicas,
            world.logs,
            broker_epoch=lambda: BROKER_EPOCH,
            last_controller_epoch=self.last_controller_epoch,
            read_config=self.read_config,
            workers=self.threads,
            catch_up=self.catch_up,
            topic_names=self.topic_names,
        )
        self.control.fetchers = self.fetchers
        self.control.on_deleted.append(self.gone.extend)

    async def catch_up(self) -> None:
        self.behind = False

    async def topic_names(self) -> set[str]:
        self.looks += 1
        return set() if self.behind else self.in_tree

    async def last_controller_epoch(self) -> int:
        return CONTROLLER_EPOCH - self.behind

    async def read_config(self, topic: str) -> dict[str, str]:
        return {} if self.behind else {"retention.ms": str(len(topic))}

    def run(self, request: Any) -> Any:
        return self.world.loop.run_until_complete(self.send(request))

    async def send(self, request: Any) -> Any:
        if isinstance(request, LeaderAndIsrRequest):
            return await self.control.leader_and_isr(request)
        if isinstance(request, StopReplicaRequest):
            return await self.control.stop_replica(request)
        return await self.control.update_metadata(request)

    def codes(self, *states: LeaderAndIsrPartitionState, **given: Any) -> list[int]:
        answer = self.run(roles(*states, **given))
        assert answer.error_code == 0
        return [error.error_code for topic in answer.topics for error in topic.partition_errors]

    def stop(self, epoch: int, *, delete: bool) -> int:
        answer = self.run(stop(epoch, delete=delete))
        return int(answer.partition_errors[0].error_code)


@pytest.fixture
def member(tmp_path: Path) -> Iterator[Member]:
    world = World(tmp_path)
    member = Member(world)
    yield member
    member.threads.shutdown()
    world.close()


def state(number: int = 0, *, leader: int = SELF, epoch: int = 0, **given: Any) -> LeaderAndIsrPartitionState:
    members = {"replicas": (SELF, 2), "isr": (SELF, 2), "partition_epoch": 0, "is_new": True, **given}
    return LeaderAndIsrPartitionState(
        partition_index=number, controller_epoch=1, leader=leader, leader_epoch=epoch, **members
    )


def roles(*states: LeaderAndIsrPartitionState, topic: str = "t", topic_id: bytes = TOPIC_ID, **given: Any) -> Any:
    topics = (LeaderAndIsrTopicState(topic_name=topic, topic_id=topic_id, partition_states=states),)
    members = {"controller_id": 2, "controller_epoch": 1, "broker_epoch": BROKER_EPOCH, "type": 0, **given}
    return LeaderAndIsrRequest(topic_states=topics, live_leaders=(), ungrouped_partition_states=(), **members)


def stop(epoch: int, *, delete: bool, **given: Any) -> StopReplicaRequest:
    doomed = StopReplicaPartitionState(partition_index=0, leader_epoch=epoch, delete_partition=delete)
    members = {"controller_id": 2, "controller_epoch": 1, "broker_epoch": BROKER_EPOCH, **given}
    return StopReplicaRequest(
        delete_partitions=False,
        ungrouped_partitions=(),
        topics=(),
        topic_states=(StopReplicaTopicState(topic_name="t", partition_states=(doomed,)),),
        **members,
    )


def shown(number: int, *, leader: int = 2, epoch: int = 3) -> UpdateMetadataPartitionState:
    return UpdateMetadataPartitionState(
        partition_index=number,
        controller_epoch=1,
        leader=leader,
        leader_epoch=epoch,
        isr=(2,),
        zk_version=9,
        replicas=(2, SELF),
        offline_replicas=(SELF,),
    )


def together(one: Any, other: Any) -> Any:
    """One request about the topics of two."""
    return one.replace(topic_states=one.topic_states + other.topic_states)


def metadata(
    *states: UpdateMetadataPartitionState, topic: str = "t", topic_id: bytes = TOPIC_ID, **given: Any
) -> UpdateMetadataRequest:
    endpoint = UpdateMetadataEndpoint(port=9092, host="two", listener="PLAINTEXT", security_protocol=0)
    topics = (UpdateMetadataTopicState(topic_name=topic, topic_id=topic_id, partition_states=states),) if states else ()
    members = {"controller_id": 2, "controller_epoch": 1, "broker_epoch": BROKER_EPOCH, **given}
    return UpdateMetadataRequest(
        ungrouped_partition_states=(),
        topic_states=topics,
        live_brokers=(UpdateMetadataBroker(id=2, endpoints=(endpoint,), rack="r"),),
        **members,
    )


def all_requests(**given: Any) -> list[Any]:
    return [roles(state(), **given), stop(0, delete=True, **given), metadata(shown(0), **given)]


# Fencing.


@pytest.mark.parametrize("number", range(3))
def test_a_request_for_an_earlier_life_of_this_broker_is_refused(member: Member, number: int) -> None:
    answer = member.run(all_requests(broker_epoch=BROKER_EPOCH - 1)[number])
    assert answer.error_code == ErrorCode.STALE_BROKER_EPOCH
    assert not member.world.replicas.partitions
    assert not member.image.topics


@pytest.mark.parametrize("number", range(3))
def test_a_request_for_a_later_registration_is_accepted(member: Member, number: int) -> None:
    assert member.run(all_requests(broker_epoch=BROKER_EPOCH + 1)[number]).error_code == 0


@pytest.mark.parametrize("number", range(3))
def test_an_older_controller_is_refused_after_a_request_of_a_newer_one(member: Member, number: int) -> None:
    assert member.run(metadata(controller_epoch=4)).error_code == 0
    assert member.run(all_requests(controller_epoch=3)[number]).error_code == ErrorCode.STALE_CONTROLLER_EPOCH
    assert member.run(all_requests(controller_epoch=4)[number]).error_code == 0


@pytest.mark.parametrize("number", range(3))
def test_an_epoch_that_the_tree_does_not_have_is_refused_and_forgotten(member: Member, number: int) -> None:
    made_up = all_requests(controller_epoch=2**31 - 1)[number]
    assert member.run(made_up).error_code == ErrorCode.STALE_CONTROLLER_EPOCH
    assert member.run(metadata(controller_epoch=1)).error_code == 0


# Roles.


def test_a_leader_serves_and_its_coordinators_hear_of_it(member: Member) -> None:
    assert member.codes(state(epoch=3)) == [ErrorCode.NONE]
    partition = member.world.replicas.partitions["t", 0]
    assert (partition.leads, partition.leader_epoch, partition.log.epochs.latest) == (True, 3, 3)
    assert member.leading == [("t", 0, 3)]
    assert member.image.early_configs == {"t": {"retention.ms": "1"}}, "settings are known before the topic is"


def test_a_repeated_or_older_epoch_changes_nothing(member: Member) -> None:
    assert member.codes(state(epoch=3)) == [ErrorCode.NONE]
    assert member.codes(state(epoch=3, leader=2)) == [ErrorCode.STALE_CONTROLLER_EPOCH]
    assert member.codes(state(epoch=2, leader=2)) == [ErrorCode.STALE_CONTROLLER_EPOCH]
    assert member.world.replicas.partitions["t", 0].leads
    assert ("start", ("t", 0), 2) not in member.fetchers.calls


def test_the_fetcher_is_stopped_before_each_new_role_and_started_after(member: Member) -> None:
    member.codes(state(epoch=0, leader=2))
    member.codes(state(epoch=1, leader=2))  # the same leader in a new epoch: reconcile again
    member.codes(state(epoch=2, leader=SELF))
    key = ("t", 0)
    assert member.fetchers.calls == [
        *(("stop", key, -1), ("start", key, 2)),
        *(("stop", key, -1), ("start", key, 2)),
        ("stop", key, -1),
    ]


def test_a_leader_that_becomes_a_follower_lets_its_produces_go(member: Member) -> None:
    member.codes(state(epoch=0))
    waiting = member.world.produce(b"v", timeout_ms=60_000)
    assert not waiting
    member.codes(state(epoch=1, leader=2))
    member.world.settle()
    assert [result.code for result in waiting] == [ErrorCode.NOT_LEADER_OR_FOLLOWER]
    assert member.leading == [("t", 0, 0), ("t", 0, -1)]


def test_a_role_that_is_not_ours_is_refused(member: Member) -> None:
    assert member.codes(state(replicas=(2, 3))) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]
    assert member.codes(state(), topic="../up") == [ErrorCode.INVALID_TOPIC_EXCEPTION]
    assert member.codes(state(-1)) == [ErrorCode.INVALID_TOPIC_EXCEPTION]
    assert not member.world.logs.logs


def test_a_log_of_an_earlier_topic_of_that_name_is_not_taken_for_the_new_one(member: Member) -> None:
    member.codes(state(epoch=3))
    assert member.codes(state(epoch=4), topic_id=OTHER_ID) == [ErrorCode.INCONSISTENT_TOPIC_ID]
    assert member.world.replicas.partitions["t", 0].leader_epoch == 3


def test_a_replica_that_is_not_new_gets_no_empty_log_while_a_directory_is_offline(tmp_path: Path) -> None:
    world = World(tmp_path, folders=2)
    member = Member(world)
    world.logs.directories[1].state.fail("reading", OSError(5, "input/output error"))
    assert member.codes(state(0, is_new=False)) == [ErrorCode.KAFKA_STORAGE_ERROR]
    assert member.codes(state(1, is_new=True)) == [ErrorCode.NONE]
    assert set(world.logs.logs) == {("t", 1)}
    member.threads.shutdown()
    world.close()


def test_a_replica_whose_directory_fails_during_the_change_is_not_led_with_an_empty_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = World(tmp_path, folders=2)
    member = Member(world)
    assert member.codes(state()) == [ErrorCode.NONE]
    log = world.replicas.partitions["t", 0].log
    log.append_as_leader(batch(b"acknowledged"), 0, Origin.CLIENT)
    prepare = member.control._prepare

    def fails_then(*roles: Any) -> Any:
        failed = prepare(*roles)
        log.directory.fail("reading", OSError(5, "input/output error"))
        world.loop.call_soon_threadsafe(world.replicas.directory_failed, log.directory.path)
        return failed

    monkeypatch.setattr(member.control, "_prepare", fails_then)
    assert member.codes(state(epoch=1, is_new=False)) == [ErrorCode.KAFKA_STORAGE_ERROR]
    assert ("t", 0) not in world.replicas.partitions
    assert ("t", 0) not in world.logs.logs
    member.threads.shutdown()
    world.close()


def test_a_failed_transition_can_be_repeated(member: Member, monkeypatch: pytest.MonkeyPatch) -> None:
    async def unreadable(_topic: str) -> dict[str, str]:
        raise OSError("the tree is gone")

    monkeypatch.setattr(member.control, "_read_config", unreadable)
    with pytest.raises(OSError, match="gone"):
        member.run(roles(state(epoch=3)))
    monkeypatch.undo()
    assert member.codes(state(epoch=3)) == [ErrorCode.NONE]


def test_requests_are_carried_out_one_after_the_other(member: Member) -> None:
    async def both() -> tuple[Any, Any]:
        first = member.send(roles(*(state(number, epoch=1) for number in range(20))))
        second = member.send(roles(*(state(number, epoch=2, leader=2) for number in range(20))))
        return await asyncio.gather(first, second)

    member.world.loop.run_until_complete(both())
    assert {partition.leader_epoch for partition in member.world.replicas.partitions.values()} == {2}
    assert not any(partition.leads for partition in member.world.replicas.partitions.values())


def test_many_partitions_in_one_request_leave_the_loop_to_others(member: Member) -> None:
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            turns += 1
            await asyncio.sleep(0)

    async def work() -> Any:
        beside = asyncio.create_task(other())
        answer = await member.send(roles(*(state(number) for number in range(600))))
        beside.cancel()
        return answer

    answer = member.world.loop.run_until_complete(work())
    codes = [error.error_code for topic in answer.topics for error in topic.partition_errors]
    assert codes == [ErrorCode.NONE] * 600
    assert turns > 50, "logs are made on threads, and roles are taken in turns"


def test_what_a_new_leader_needs_is_prepared_on_a_thread(member: Member) -> None:
    prepared: list[tuple[str, bool]] = []
    here = threading.current_thread()
    member.control.prepare_to_lead.append(lambda topic: prepared.append((topic, threading.current_thread() is here)))
    member.codes(state(0), state(1, leader=2))
    assert prepared == [("t", False)]


def test_replicas_of_a_failed_directory_are_not_followed_any_more(member: Member) -> None:
    member.codes(state(0, epoch=0, leader=2), state(1, epoch=0))
    path = member.world.paths[0]
    member.world.loop.run_until_complete(member.control.directory_failed(path))
    assert ("stop", ("t", 0), -1) in member.fetchers.calls[-2:]
    assert not member.world.replicas.partitions
    assert member.world.replicas.offline == {("t", 0), ("t", 1)}
    assert member.leading[-1] == ("t", 1, -1)


def test_a_server_of_the_tree_that_lags_behind_costs_neither_a_request_nor_settings(member: Member) -> None:
    assert member.run(metadata(shown(0), controller_epoch=CONTROLLER_EPOCH)).error_code == ErrorCode.NONE
    assert member.image.controller_epoch == CONTROLLER_EPOCH
    member.behind = True
    assert member.codes(state(), topic="u", topic_id=OTHER_ID, controller_epoch=CONTROLLER_EPOCH) == [ErrorCode.NONE]
    assert member.image.topic_config("u") == {"retention.ms": "1"}


# Stopping.


def test_a_stopped_replica_keeps_its_log_and_its_epoch(member: Member) -> None:
    member.codes(state(epoch=3, leader=2))
    assert member.stop(3, delete=False) == ErrorCode.NONE
    assert member.fetchers.calls[-1] == ("stop", ("t", 0), -1)
    assert ("t", 0) in member.world.logs.logs
    assert member.codes(state(epoch=3, leader=2)) == [ErrorCode.STALE_CONTROLLER_EPOCH]


def test_a_log_in_a_directory_that_is_offline_is_not_said_to_be_deleted(tmp_path: Path) -> None:
    """The broker would have it again after its next start."""
    world = World(tmp_path, folders=2)
    member = Member(world)
    assert member.codes(state(0), state(1)) == [ErrorCode.NONE] * 2
    directory = world.logs.logs["t", 0].directory
    assert world.logs.logs["t", 1].directory is not directory
    directory.fail("reading", OSError(5, "input/output error"))
    world.loop.run_until_complete(member.control.directory_failed(directory.path))
    assert member.stop(-2, delete=True) == ErrorCode.KAFKA_STORAGE_ERROR
    member.threads.shutdown()
    world.close()


def test_a_stop_of_an_older_epoch_is_refused(member: Member) -> None:
    member.codes(state(epoch=3))
    assert member.stop(2, delete=True) == ErrorCode.FENCED_LEADER_EPOCH
    assert member.world.replicas.partitions["t", 0].leads


@pytest.mark.parametrize("epoch", [-2, -1, 3, 4])
def test_a_deleted_replica_is_gone_from_memory_and_disk(member: Member, epoch: int) -> None:
    member.codes(state(epoch=3))
    assert member.stop(epoch, delete=True) == ErrorCode.NONE
    assert ("t", 0) not in member.world.replicas.partitions
    assert ("t", 0) not in member.world.logs.logs
    assert member.leading[-1] == ("t", 0, -1)


def test_the_delayed_records_of_a_deleted_replica_go_with_it(member: Member) -> None:
    member.codes(state())
    member.world.logs.create(sibling_of("t"), 0, TOPIC_ID)
    assert member.stop(-2, delete=True) == ErrorCode.NONE
    assert not member.world.logs.logs
    assert member.codes(state(), topic_id=OTHER_ID) == [ErrorCode.NONE]
    member.world.logs.create(sibling_of("t"), 0, OTHER_ID)


def test_a_log_that_no_replica_uses_is_deleted_too(member: Member) -> None:
    member.world.logs.create("t", 0, TOPIC_ID)
    assert member.stop(-2, delete=True) == ErrorCode.NONE
    assert ("t", 0) not in member.world.logs.logs


# Metadata.


def test_the_image_has_the_brokers_the_controller_and_the_partitions(member: Member) -> None:
    member.run(metadata(shown(0), shown(2)))
    image = member.image
    assert sorted(image.brokers) == [SELF, 2], "this broker knows of itself"
    assert image.brokers[2].endpoints == {"PLAINTEXT": ("two", 9092)}
    assert (image.controller_id, image.controller_epoch) == (2, 1)
    topic = image.topics["t"]
    assert image.ids[TOPIC_ID] is topic
    assert topic.config == {"retention.ms": "1"}
    assert [(each.number, each.leader, each.replicas) for each in topic.partitions] == [
        (0, 2, (2, SELF)),
        (1, -1, ()),  # has no leader yet, so it was not named
        (2, 2, (2, SELF)),
    ]
    assert topic.partitions[0].partition_epoch == 9
    assert topic.partitions[0].offline == (SELF,)


def test_the_image_is_complete_after_the_first_update_that_names_topics(member: Member) -> None:
    member.run(metadata())
    assert not member.image.complete, "a new controller first names the brokers alone"
    member.codes(state())
    assert not member.image.complete
    member.run(metadata(shown(1), type=MORE_FOLLOW))
    assert not member.image.complete, "another request has the rest"
    member.run(metadata(shown(0)))
    assert member.image.complete


def test_an_update_names_what_has_changed_only(member: Member) -> None:
    member.run(metadata(shown(0), shown(1)))
    member.image.topics["t"].config = {"retention.ms": "7"}
    member.run(metadata(shown(1, leader=SELF, epoch=4)))
    assert [each.leader for each in member.image.topics["t"].partitions] == [2, SELF]
    assert member.image.topics["t"].config == {"retention.ms": "7"}, "settings come by their own notices"
    member.run(metadata())
    assert list(member.image.topics) == ["t"]


def test_settings_that_change_while_a_topic_is_taken_in_are_not_lost(
    member: Member, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = metadata_update.take_partitions

    def changed_meanwhile(topic: TopicImage, update: UpdateMetadataTopicState) -> Iterator[None]:
        yield from real(topic, update)
        # As `startup.config_changes` does when a notice names the topic.
        assert member.image.topic_config("t") == {"retention.ms": "1"}
        member.image.change_topic_config("t", {"retention.ms": "7"})

    monkeypatch.setattr(metadata_update, "take_partitions", changed_meanwhile)
    member.run(metadata(shown(0)))
    assert member.image.topics["t"].config == {"retention.ms": "7"}
    assert not member.image.early_configs


@pytest.mark.parametrize("ask", ["roles", "metadata"])
def test_settings_that_change_while_the_broker_starts_reach_the_logs_that_are_open(member: Member, ask: str) -> None:
    """Found by seed 110192 of the simulator: the image had the new settings, so the notice of them was no news."""
    follow_settings(member)
    member.image.early_configs["t"] = {"retention.ms": "9"}
    log = member.world.logs.create("t", 0, TOPIC_ID)
    assert log.config.retention_ms == 9
    member.run(roles(state(leader=2)) if ask == "roles" else metadata(shown(0)))
    assert log.config.retention_ms == 1
    assert not member.image.change_topic_config("t", {"retention.ms": "1"}), "the notice is no news"


def follow_settings(member: Member) -> None:
    world = member.world

    def config_of(topic: str) -> LogConfig:
        given = member.image.topic_config(topic) or {}
        return replace(world.config, retention_ms=int(given.get("retention.ms", -1)))

    world.logs.config_of = config_of


def test_a_topic_made_anew_has_its_own_settings_although_the_deletion_was_missed(member: Member) -> None:
    """The controller was lost between the two; the next one names no partitions that have no leader yet."""
    follow_settings(member)
    member.run(metadata(shown(0), topic_id=OTHER_ID))
    member.image.change_topic_config("t", {"retention.ms": "9"})
    assert member.codes(state()) == [ErrorCode.NONE]
    assert member.world.logs.logs["t", 0].config.retention_ms == 1
    member.run(metadata(shown(0)))
    assert member.image.topic_config("t") == {"retention.ms": "1"}
    assert member.world.logs.logs["t", 0].config.retention_ms == 1


def test_settings_that_change_after_one_of_two_early_replicas_has_gone_reach_the_other(member: Member) -> None:
    follow_settings(member)
    member.image.early_configs["t"] = {"retention.ms": "9"}
    log = [member.world.logs.create("t", number, TOPIC_ID) for number in range(2)][1]
    assert member.stop(3, delete=True) == ErrorCode.NONE
    assert member.codes(state(1)) == [ErrorCode.NONE]
    assert log.config.retention_ms == 1


@pytest.mark.parametrize("is_known", [False, True], ids=["new", "recreated"])
@pytest.mark.parametrize("ask", ["roles", "metadata"])
def test_settings_that_change_while_those_of_others_are_read_are_not_lost(
    member: Member, monkeypatch: pytest.MonkeyPatch, ask: str, is_known: bool
) -> None:
    """The read of "uu" is held back; the settings of "t" change after they were read."""
    if is_known:
        member.run(metadata(shown(0), topic_id=OTHER_ID))

    async def work() -> None:
        go_on, is_held = asyncio.Event(), asyncio.Event()

        async def read_config(topic: str) -> dict[str, str]:
            if topic == "uu":
                is_held.set()
                await go_on.wait()
            return {"retention.ms": str(len(topic))}

        monkeypatch.setattr(member.control, "_read_config", read_config)
        one, other = (
            (roles(state(leader=2)), roles(state(leader=2), topic="uu", topic_id=bytes(range(16, 32))))
            if ask == "roles"
            else (metadata(shown(0)), metadata(shown(0), topic="uu", topic_id=bytes(range(16, 32))))
        )
        request = together(one, other)
        sending = asyncio.ensure_future(member.send(request))
        await is_held.wait()
        await asyncio.sleep(0)  # the settings of "t" have been read
        # As `startup.config_changes` does when a notice names the topic.
        assert member.image.change_topic_config("t", {"retention.ms": "7"})
        go_on.set()
        await sending

    member.world.loop.run_until_complete(work())
    if ask == "roles":
        assert member.image.early_configs["t"] == {"retention.ms": "7"}
    else:
        assert member.image.topics["t"].config == {"retention.ms": "7"}


def test_a_read_that_fails_ends_the_request_and_leaves_no_other_behind(
    member: Member, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def read_config(topic: str) -> dict[str, str]:
        if topic == "t":
            raise ConnectionLostError(topic, "gone")
        await asyncio.sleep(0)
        return {}

    monkeypatch.setattr(member.control, "_read_config", read_config)
    both = metadata(shown(0)), metadata(shown(0), topic="uu")
    request = together(*both)
    with pytest.raises(ConnectionLostError):
        member.run(request)
    assert member.image.early_configs == {"uu": {}}, "it was waited for"
    assert not member.image.topics


def test_a_deleted_topic_leaves_the_image(member: Member) -> None:
    member.run(metadata(shown(0)))
    member.run(metadata(shown(0, leader=-2)))
    assert not member.image.topics
    assert not member.image.ids
    assert member.gone == ["t"]


@pytest.mark.parametrize(
    "later", [{"broker_epoch": BROKER_EPOCH + 1}, {"controller_epoch": CONTROLLER_EPOCH}], ids=["life", "controller"]
)
@pytest.mark.parametrize("left", [set(), {"v"}])
def test_a_topic_that_was_deleted_unheard_leaves_the_image(
    member: Member, later: dict[str, int], left: set[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """This broker slept until its session had expired, or the controller was lost before it had sent the deletion."""
    first = {"controller_epoch": CONTROLLER_EPOCH - 1, "broker_epoch": BROKER_EPOCH}
    member.in_tree = {"t", "u", "v"}
    for topic, topic_id in (("t", TOPIC_ID), ("u", OTHER_ID), ("v", bytes([7] * 16))):
        member.run(metadata(shown(0), topic=topic, topic_id=topic_id, **first))
    looks = member.looks
    member.in_tree = {"u", *left}
    member.run(metadata(shown(0), topic="u", topic_id=OTHER_ID, **first))
    assert (set(member.image.topics), member.looks) == ({"t", "u", "v"}, looks), "the controller sends deletions"

    async def away() -> set[str]:
        raise ConnectionLostError("/brokers/topics", "gone")

    known = member.control._topic_names
    monkeypatch.setattr(member.control, "_topic_names", away)
    update = metadata(shown(0), topic="u", topic_id=OTHER_ID, **{**first, **later})
    with pytest.raises(ConnectionLostError):
        member.run(update)
    monkeypatch.setattr(member.control, "_topic_names", known)
    member.behind = True
    member.run(update)  # repeated by the controller
    assert set(member.image.topics) == {"u", *left}
    assert sorted(member.gone) == sorted({"t", "v"} - left)
    assert len(member.image.ids) == 1 + len(left)
    looks = member.looks
    member.run(update)
    assert member.looks == looks


def test_a_topic_created_again_under_the_same_name_replaces_the_old_one(member: Member) -> None:
    member.run(metadata(shown(0), shown(1)))
    member.run(metadata(shown(0), topic_id=OTHER_ID))
    assert list(member.image.ids) == [OTHER_ID]
    assert len(member.image.topics["t"].partitions) == 1
    assert member.gone == ["t"]


def test_a_partition_number_beyond_reason_does_not_fill_the_memory(member: Member) -> None:
    with pytest.raises(ValueError, match="cannot have a partition 2000000000"):
        member.run(metadata(shown(2_000_000_000)))


def test_roles_are_checked_and_answered_in_steps(member: Member, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 10,000 partitions each took some 100 ms in one turn of the loop."""
    taken: list[int] = []

    async def counted(steps: Steps[Any]) -> Any:
        made: list[Any] = []

        def keep() -> Steps[None]:
            made.append((yield from steps))

        taken.append(len(list(keep())))
        return made[0]

    monkeypatch.setattr(control, "in_turns", counted)
    strange = [state(number, leader=2, replicas=(2, 3), isr=(2, 3)) for number in range(5)]
    assert member.codes(*strange) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * 5
    assert taken == [5, 0, 5]  # checked, none taken, answered


def test_a_new_controller_is_announced_once(member: Member) -> None:
    heard: list[int] = []
    member.control.on_controller.append(lambda: heard.append(member.image.controller_id))
    member.run(metadata())
    member.run(metadata())
    assert heard == [2]
    member.run(metadata(controller_id=3, controller_epoch=CONTROLLER_EPOCH))
    assert heard == [2, 3]
