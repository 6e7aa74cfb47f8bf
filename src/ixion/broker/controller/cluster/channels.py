"""Sends the controller's requests to the brokers: a channel for each broker, with one request in flight.

A request is sent again after any fault until the broker has answered it, or is no longer registered. So a broker gets
all requests of a controller in their order, some of them twice; a repeated one has no effect, because its leader epoch
is not new. The controller's own broker gets the same requests by a call (`Door`).
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Protocol

from ixion.broker.controller.cluster.batch import ControlRequest, address_of
from ixion.broker.controller.cluster.cluster import Member
from ixion.broker.controller.door import Door, LogEnds
from ixion.clients.address import Address
from ixion.clients.channel import Connect, connect
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.model.topic_partition import NO_LOG, TopicPartition
from ixion.language.protocol.messages.k02_list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from ixion.language.protocol.messages.k04_leader_and_isr import LeaderAndIsrRequest, LeaderAndIsrResponse
from ixion.language.protocol.messages.k05_stop_replica import StopReplicaRequest, StopReplicaResponse
from ixion.language.protocol.messages.k06_update_metadata import UpdateMetadataRequest, UpdateMetadataResponse
from ixion.language.protocol.notation import Struct
from ixion.language.protocol.registry import ApiKey

logger = logging.getLogger(__name__)

ControlResponse = LeaderAndIsrResponse | StopReplicaResponse | UpdateMetadataResponse
Answered = Callable[[int, ControlRequest, ControlResponse], None]

PAUSE_S: Final = 0.1  # before a request is sent again
ENDS_S: Final = 5.0  # to ask for the ends of logs, while an election waits
LATEST: Final = -1
DEBUGGER: Final = -2  # as a replica id: any replica answers
# The versions of inter.broker.protocol.version 3.9; they are not negotiated.
VERSIONS: Final[dict[type[Struct], tuple[ApiKey, int]]] = {
    LeaderAndIsrRequest: (ApiKey.LEADER_AND_ISR, 7),
    StopReplicaRequest: (ApiKey.STOP_REPLICA, 4),
    UpdateMetadataRequest: (ApiKey.UPDATE_METADATA, 8),
}


class Carrier(Protocol):
    """Sends one request to a broker."""

    async def carry(self, request: ControlRequest) -> ControlResponse: ...

    async def log_ends(self, keys: Sequence[TopicPartition]) -> LogEnds:
        """The last epoch and the end of its logs of these partitions: `NO_LOG` if it has no log; left out if it does
        not know, because a directory is offline."""
        ...

    def close(self) -> None: ...


class RemoteCarrier:
    def __init__(self, member: Member, listener: str, controller_id: int, timeout_s: float, connect: Connect) -> None:
        self._listener = listener
        address = address_of(member, listener)
        client_id = str(controller_id)
        self._channel = None if address is None else connect(Address(*address), client_id, timeout_s)

    async def carry(self, request: ControlRequest) -> ControlResponse:
        if self._channel is None:
            raise KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, f"the broker has no listener {self._listener}")
        api, version = VERSIONS[type(request)]
        answer = await self._channel.ask(api, version, request)
        assert isinstance(answer, (LeaderAndIsrResponse, StopReplicaResponse, UpdateMetadataResponse))
        return answer

    async def log_ends(self, keys: Sequence[TopicPartition]) -> LogEnds:
        if self._channel is None:
            return {}
        # Only ixion answers newer versions; Apache Kafka's answer has the epoch of the partition, not that of the log.
        version = await self._channel.version(ApiKey.LIST_OFFSETS, oldest=11)
        topics: dict[str, list[ListOffsetsPartition]] = {}
        for name, number in keys:
            topics.setdefault(name, []).append(ListOffsetsPartition(partition_index=number, timestamp=LATEST))
        request = ListOffsetsRequest(
            replica_id=DEBUGGER,
            topics=tuple(ListOffsetsTopic(name=name, partitions=tuple(wishes)) for name, wishes in topics.items()),
        )
        answer = await self._channel.ask(ApiKey.LIST_OFFSETS, version, request)
        assert isinstance(answer, ListOffsetsResponse)
        ends: LogEnds = {}
        for topic in answer.topics:
            for each in topic.partitions:
                if each.error_code == ErrorCode.NONE:
                    ends[topic.name, each.partition_index] = (each.leader_epoch, each.offset)
                elif each.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                    ends[topic.name, each.partition_index] = NO_LOG
        return ends

    def close(self) -> None:
        if self._channel is not None:
            self._channel.close()


class LocalCarrier:
    def __init__(self, door: Door) -> None:
        self._door = door

    async def carry(self, request: ControlRequest) -> ControlResponse:
        if isinstance(request, LeaderAndIsrRequest):
            return await self._door.leader_and_isr(request)
        if isinstance(request, StopReplicaRequest):
            return await self._door.stop_replica(request)
        return await self._door.update_metadata(request)

    async def log_ends(self, keys: Sequence[TopicPartition]) -> LogEnds:
        return self._door.log_ends(keys)

    def close(self) -> None:
        """Does nothing: there is no connection."""


def carriers(
    node_id: int, door: Door, listener: str, timeout_ms: int, connect: Connect = connect
) -> Callable[[Member], Carrier]:
    """Makes carriers: calls for this broker, connections with this timeout for the others."""

    def carrier_to(member: Member) -> Carrier:
        if member.broker_id == node_id:
            return LocalCarrier(door)
        return RemoteCarrier(member, listener, node_id, timeout_ms / 1_000, connect)

    return carrier_to


class BrokerChannel:
    """The requests to one broker, in their order."""

    def __init__(self, member: Member, carrier: Carrier, answered: Answered) -> None:
        self.member = member
        self._carrier = carrier
        self._answered = answered
        self._waiting: deque[ControlRequest | asyncio.Future[None]] = deque()
        self._stirred = asyncio.Event()
        self._task = asyncio.get_running_loop().create_task(self._run())

    def send(self, request: ControlRequest) -> None:
        self._waiting.append(request)
        self._stirred.set()

    async def log_ends(self, keys: Sequence[TopicPartition]) -> LogEnds | None:
        """None if the broker does not answer in time; empty if it cannot say it, as Apache Kafka's brokers."""
        try:
            async with asyncio.timeout(ENDS_S):
                return await self._carrier.log_ends(keys)
        except (KafkaError, TimeoutError) as error:
            logger.info("broker %d did not answer where its logs end: %s", self.member.broker_id, error)
            is_other = isinstance(error, KafkaError) and error.code is ErrorCode.UNSUPPORTED_VERSION
            return {} if is_other else None

    def mark(self) -> asyncio.Future[None]:
        """A future that is done when all requests so far are answered, or the channel is closed."""
        mark: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(mark)
        self._stirred.set()
        return mark

    async def close(self) -> None:
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        self._carrier.close()
        for entry in self._waiting:
            if isinstance(entry, asyncio.Future) and not entry.done():
                entry.set_result(None)
        self._waiting.clear()

    async def _run(self) -> None:
        while True:
            while self._waiting:
                entry = self._waiting[0]
                if isinstance(entry, asyncio.Future):
                    if not entry.done():
                        entry.set_result(None)
                else:
                    answer = await self._carry(entry)
                    self._answered(self.member.broker_id, entry, answer)
                self._waiting.popleft()
            self._stirred.clear()
            await self._stirred.wait()

    async def _carry(self, request: ControlRequest) -> ControlResponse:
        failed = 0
        while True:
            try:
                answer = await self._carrier.carry(request)
                if failed:
                    logger.info("broker %d answers again", self.member.broker_id)
                return answer
            except asyncio.CancelledError:
                raise
            except Exception as error:
                failed += 1
                if failed == 1:
                    title = VERSIONS[type(request)][0].title
                    logger.warning("%s to broker %d is sent again: %s", title, self.member.broker_id, error)
            await asyncio.sleep(PAUSE_S)


class Channels:
    def __init__(self, make_carrier: Callable[[Member], Carrier], answered: Answered) -> None:
        self._make_carrier = make_carrier
        self._answered = answered
        self._channels: dict[int, BrokerChannel] = {}

    def open(self, member: Member) -> None:
        self._channels[member.broker_id] = BrokerChannel(member, self._make_carrier(member), self._answered)

    def send(self, broker: int, request: ControlRequest) -> None:
        """Does nothing if the broker has no channel: it is not registered."""
        channel = self._channels.get(broker)
        if channel is not None:
            channel.send(request)

    async def log_ends(self, wanted: Mapping[int, Sequence[TopicPartition]]) -> dict[int, LogEnds]:
        """The ends of these logs by broker; brokers that do not answer in time are left out."""
        asked = {broker: keys for broker, keys in wanted.items() if broker in self._channels}
        found = await asyncio.gather(*(self._channels[broker].log_ends(keys) for broker, keys in asked.items()))
        return {broker: ends for broker, ends in zip(asked, found, strict=True) if ends is not None}

    async def reachable(self, broker: int) -> None:
        """Returns when the broker answers where its logs end, or is gone. It is asked again and again."""
        while broker in self._channels and not await self.log_ends({broker: ()}):
            await asyncio.sleep(PAUSE_S)

    async def settled(self, broker: int) -> None:
        """Returns when the broker has answered all requests so far, or is gone."""
        channel = self._channels.get(broker)
        if channel is not None:
            await channel.mark()

    async def close(self, broker: int) -> None:
        channel = self._channels.pop(broker, None)
        if channel is not None:
            await channel.close()

    async def close_all(self) -> None:
        for broker in list(self._channels):
            await self.close(broker)
