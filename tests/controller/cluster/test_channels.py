"""The way to a broker: in order, one request at a time, again after a fault, until the broker is gone."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import pytest

from ixion.broker.controller.cluster import channels as module
from ixion.broker.controller.cluster.batch import ControlRequest
from ixion.broker.controller.cluster.channels import VERSIONS, Channels, ControlResponse, RemoteCarrier, carriers
from ixion.broker.controller.cluster.cluster import Member
from ixion.broker.controller.door import LogEnds
from ixion.broker.metadata.broker_node import Registration
from ixion.config.listeners import Endpoint
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.model.topic_partition import NO_LOG, TopicPartition
from ixion.language.protocol.messages.k02_list_offsets import (
    ListOffsetsPartitionResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopicResponse,
)
from ixion.language.protocol.messages.k04_leader_and_isr import LeaderAndIsrRequest, LeaderAndIsrResponse
from ixion.language.protocol.messages.k05_stop_replica import StopReplicaRequest, StopReplicaResponse
from ixion.language.protocol.messages.k06_update_metadata import UpdateMetadataRequest, UpdateMetadataResponse
from ixion.language.protocol.notation import Struct
from ixion.language.protocol.registry import ApiKey


def member(number: int, *endpoints: Endpoint) -> Member:
    registration = Registration(endpoints=endpoints, timestamp_ms=0)
    return Member(broker_id=number, epoch=number, registration=registration)


def update(epoch: int) -> UpdateMetadataRequest:
    return UpdateMetadataRequest(controller_id=1, controller_epoch=epoch, topic_states=(), live_brokers=())


class Recorder:
    """A broker that fails a given number of times."""

    def __init__(self) -> None:
        self.tried: list[int] = []
        self.failures = 0
        self.gate = asyncio.Event()
        self.gate.set()
        self.closed = False

    async def log_ends(self, keys: Sequence[TopicPartition]) -> LogEnds:
        return dict.fromkeys(keys, (0, 1))

    async def carry(self, request: ControlRequest) -> ControlResponse:
        self.tried.append(request.controller_epoch)
        await self.gate.wait()
        if self.failures:
            self.failures -= 1
            raise KafkaError(ErrorCode.NETWORK_EXCEPTION, "test")
        return UpdateMetadataResponse(error_code=0)

    def close(self) -> None:
        self.closed = True


def play(story: Callable[[Channels, Recorder, list[int]], Awaitable[None]]) -> None:
    async def run() -> None:
        recorder, answered = Recorder(), list[int]()
        made = Channels(lambda _: recorder, lambda _broker, request, _answer: answered.append(request.controller_epoch))
        made.open(member(2))
        await story(made, recorder, answered)
        await made.close_all()

    asyncio.run(asyncio.wait_for(run(), 20))


def test_requests_arrive_in_order_and_one_at_a_time() -> None:
    async def story(channels: Channels, recorder: Recorder, answered: list[int]) -> None:
        recorder.gate.clear()
        for epoch in range(5):
            channels.send(2, update(epoch))
        channels.send(9, update(99))  # not registered
        for _ in range(10):
            await asyncio.sleep(0)
        assert (recorder.tried, answered) == ([0], [])
        recorder.gate.set()
        await channels.settled(2)
        assert (recorder.tried, answered) == ([0, 1, 2, 3, 4], [0, 1, 2, 3, 4])

    play(story)


def test_a_request_is_sent_again_until_it_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    async def story(channels: Channels, recorder: Recorder, answered: list[int]) -> None:
        recorder.failures = 3
        channels.send(2, update(1))
        channels.send(2, update(2))
        await channels.settled(2)
        assert (recorder.tried, answered) == ([1, 1, 1, 1, 2], [1, 2])

    monkeypatch.setattr(module, "PAUSE_S", 0.0)
    play(story)


def test_a_dead_broker_gets_no_more_requests_and_holds_up_no_change() -> None:
    async def story(channels: Channels, recorder: Recorder, answered: list[int]) -> None:
        recorder.gate.clear()
        channels.send(2, update(1))
        channels.send(2, update(2))
        waiting = asyncio.ensure_future(channels.settled(2))
        for _ in range(5):
            await asyncio.sleep(0)
        await channels.close(2)
        await waiting
        assert recorder.closed
        recorder.gate.set()
        channels.send(2, update(3))
        await channels.settled(2)
        assert (recorder.tried, answered) == ([1], [])

    play(story)


def test_the_own_broker_is_called_and_others_are_connected_to() -> None:
    class Door:
        def __init__(self) -> None:
            self.calls: list[str] = []

        async def leader_and_isr(self, request: LeaderAndIsrRequest) -> LeaderAndIsrResponse:
            self.calls.append("leader_and_isr")
            return LeaderAndIsrResponse(error_code=0)

        async def stop_replica(self, request: StopReplicaRequest) -> StopReplicaResponse:
            self.calls.append("stop_replica")
            return StopReplicaResponse(error_code=0, partition_errors=())

        async def update_metadata(self, request: UpdateMetadataRequest) -> UpdateMetadataResponse:
            self.calls.append("update_metadata")
            return UpdateMetadataResponse(error_code=0)

        def log_ends(self, keys: Sequence[TopicPartition]) -> LogEnds:
            return dict.fromkeys(keys, (3, 4))

    async def run() -> None:
        door = Door()
        carrier_to = carriers(1, door, "PLAINTEXT", 1_000)
        own = carrier_to(member(1))
        await own.carry(update(1))
        await own.carry(LeaderAndIsrRequest(controller_id=1, controller_epoch=1, live_leaders=()))
        await own.carry(StopReplicaRequest(controller_id=1, controller_epoch=1))
        assert door.calls == ["update_metadata", "leader_and_isr", "stop_replica"]
        assert await own.log_ends([("t", 0)]) == {("t", 0): (3, 4)}
        assert isinstance(carrier_to(member(2)), RemoteCarrier)
        with pytest.raises(KafkaError, match="no listener PLAINTEXT"):
            await carrier_to(member(2)).carry(update(1))
        taken = asyncio.Event()

        def hang_up(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.close()
            taken.set()

        server = await asyncio.start_server(hang_up, "127.0.0.1")
        other = carrier_to(member(3, Endpoint("PLAINTEXT", *server.sockets[0].getsockname())))
        with pytest.raises(KafkaError):
            await other.carry(update(1))
        assert taken.is_set()
        other.close()
        server.close()

    asyncio.run(asyncio.wait_for(run(), 20))


def test_versions_are_those_of_protocol_3_9() -> None:
    assert {api.title: version for api, version in VERSIONS.values()} == {
        "LeaderAndIsr": 7,
        "StopReplica": 4,
        "UpdateMetadata": 8,
    }


def test_a_broker_without_the_log_says_so_and_one_with_a_failed_directory_says_nothing() -> None:
    codes = {0: ErrorCode.NONE, 1: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 2: ErrorCode.KAFKA_STORAGE_ERROR}

    class Line:
        async def version(self, _api: ApiKey, *, oldest: int = 0, newest: int = 99) -> int:
            return max(oldest, min(newest, 11))

        async def ask(self, _api: ApiKey, _version: int, request: Struct) -> Struct:
            assert isinstance(request, ListOffsetsRequest)
            found = tuple(
                ListOffsetsPartitionResponse(partition_index=number, error_code=code, offset=7, leader_epoch=3)
                for number, code in codes.items()
            )
            return ListOffsetsResponse(topics=(ListOffsetsTopicResponse(name="t", partitions=found),))

        def close(self) -> None:
            pass

    async def run() -> None:
        endpoint = Endpoint("PLAINTEXT", "127.0.0.1", 1)
        carrier = RemoteCarrier(member(2, endpoint), "PLAINTEXT", 1, 1.0, lambda *_: Line())  # type: ignore[arg-type]
        assert await carrier.log_ends([("t", number) for number in codes]) == {("t", 0): (3, 7), ("t", 1): NO_LOG}

    asyncio.run(asyncio.wait_for(run(), 20))
