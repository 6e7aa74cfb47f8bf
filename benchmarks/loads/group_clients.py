"""Groups as clients see them: commits of one librdkafka consumer, and five hundred members on connections of their own.

The members are a plain program on one event loop: they join, sync, send heartbeats, and rejoin when asked.
Their cost is the same whichever broker they talk to, and it is not small: 500 members absorb one leaving with 1,500
requests, for which this program needs some 40 ms of processor time, about as much as the broker.

Members learn of a rebalance by their next heartbeat. They all send theirs at about the same time, as they were all told
their assignment at about the same time, so one leaving takes up to a heartbeat's interval longer than another. Hence
there are several, each at another point of the interval, and the median counts.
"""

from __future__ import annotations

import asyncio
import statistics
import time
from typing import Any

import uvloop
from confluent_kafka import Consumer, KafkaException, TopicPartition

from ixion.language.protocol.messages.k10_find_coordinator import FindCoordinatorRequest
from ixion.language.protocol.messages.k11_join_group import JoinGroupRequest, JoinGroupRequestProtocol
from ixion.language.protocol.messages.k12_heartbeat import HeartbeatRequest
from ixion.language.protocol.messages.k13_leave_group import LeaveGroupRequest, MemberIdentity
from ixion.language.protocol.messages.k14_sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from ixion.language.protocol.notation import Struct
from ixion.language.protocol.registry import ApiKey
from ixion.language.protocol.storage import encode
from ixion.language.protocol.stored.consumer_protocol import ConsumerProtocolSubscription
from ixion.language.wire.client import ClientConnection

WARM = 300  # commits that are not counted
HEARTBEAT_S = 0.1
LEAVINGS = 9
SUBSCRIPTION = encode(ConsumerProtocolSubscription(topics=("t",)), 0)
REBALANCE_IN_PROGRESS, MEMBER_ID_REQUIRED = 27, 79


def commits(bootstrap: str, count: int) -> tuple[float, float]:
    """Commits a second, one after the other and as many at once as the client sends."""
    answered = 0

    def on_commit(error: Any, _partitions: list[TopicPartition]) -> None:
        nonlocal answered
        assert error is None, error
        answered += 1

    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": "commits", "enable.auto.commit": False, "on_commit": on_commit}
    )
    partition = TopicPartition("t", 0, 0)
    while True:  # until the coordinator is there
        try:
            consumer.commit(offsets=[partition], asynchronous=False)
            break
        except KafkaException:
            time.sleep(0.2)
    begun = 0.0
    for number in range(WARM + count):
        if number == WARM:
            begun = time.perf_counter()
        partition.offset = number
        consumer.commit(offsets=[partition], asynchronous=False)
    one_by_one = count / (time.perf_counter() - begun)
    answered = 0
    begun = time.perf_counter()
    for number in range(count):
        consumer.commit(offsets=[TopicPartition("t", 0, number)], asynchronous=True)
    while answered < count:
        consumer.poll(0.01)
    at_once = count / (time.perf_counter() - begun)
    consumer.close()
    return one_by_one, at_once


class Member:
    def __init__(self, group: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.group = group
        self.member_id = ""
        self.generation = -1
        self.synced = 0  # the generation of which it has its assignment
        self._reader = reader
        self._writer = writer
        self._connection = ClientConnection("member")

    async def ask(self, key: ApiKey, version: int, body: Struct) -> Any:
        _, parts = self._connection.request(int(key), version, body)
        self._writer.write(b"".join(parts))
        while (answer := self._connection.next_answer()) is None:
            self._connection.receive(await self._reader.read(1 << 16))
        return answer.decode()

    async def join(self) -> None:
        while True:
            joined = await self.ask(
                ApiKey.JOIN_GROUP,
                5,
                JoinGroupRequest(
                    group_id=self.group,
                    session_timeout_ms=60_000,
                    rebalance_timeout_ms=60_000,
                    member_id=self.member_id,
                    protocol_type="consumer",
                    protocols=(JoinGroupRequestProtocol(name="range", metadata=SUBSCRIPTION),),
                ),
            )
            self.member_id = joined.member_id
            if joined.error_code == MEMBER_ID_REQUIRED:
                continue
            assert joined.error_code == 0, joined.error_code
            self.generation = joined.generation_id
            members = joined.members if joined.leader == self.member_id else ()
            synced = await self.ask(
                ApiKey.SYNC_GROUP,
                3,
                SyncGroupRequest(
                    group_id=self.group,
                    generation_id=self.generation,
                    member_id=self.member_id,
                    assignments=tuple(
                        SyncGroupRequestAssignment(member_id=each.member_id, assignment=bytes(20)) for each in members
                    ),
                ),
            )
            if synced.error_code == REBALANCE_IN_PROGRESS:
                continue
            assert synced.error_code == 0, synced.error_code
            self.synced = self.generation
            return

    async def live(self) -> None:
        await self.join()
        while True:
            await asyncio.sleep(HEARTBEAT_S)
            beat = await self.ask(
                ApiKey.HEARTBEAT,
                3,
                HeartbeatRequest(group_id=self.group, generation_id=self.generation, member_id=self.member_id),
            )
            if beat.error_code == REBALANCE_IN_PROGRESS:
                await self.join()
            else:
                assert beat.error_code == 0, beat.error_code

    async def leave(self) -> None:
        leaving = (MemberIdentity(member_id=self.member_id),)
        await self.ask(ApiKey.LEAVE_GROUP, 3, LeaveGroupRequest(group_id=self.group, members=leaving))


async def _member(host: str, port: int, group: str) -> Member:
    return Member(group, *await asyncio.open_connection(host, port, limit=1 << 20))


async def _in_one_generation(members: list[Member], after: int) -> None:
    while len({member.synced for member in members}) > 1 or members[0].synced <= after:
        await asyncio.sleep(0.001)


async def _settle(host: str, port: int, size: int) -> tuple[float, float]:
    first = await _member(host, port, "large")
    while (await first.ask(ApiKey.FIND_COORDINATOR, 3, FindCoordinatorRequest(key="large"))).error_code:
        await asyncio.sleep(0.1)
    members = [first, *[await _member(host, port, "large") for _ in range(size - 1)]]
    begun = time.perf_counter()
    lives = [asyncio.create_task(member.live()) for member in members]
    await asyncio.wait_for(_in_one_generation(members, 0), 120)
    settled = time.perf_counter() - begun
    await asyncio.sleep(1)
    absorbed = []
    for number in range(LEAVINGS):
        leaver = members.pop()
        lives.pop().cancel()
        await asyncio.sleep(0.3 + number * HEARTBEAT_S / LEAVINGS)
        other = await _member(host, port, "large")
        other.member_id = leaver.member_id
        begun = time.perf_counter()
        await other.leave()
        await asyncio.wait_for(_in_one_generation(members, leaver.synced), 120)
        absorbed.append(time.perf_counter() - begun)
    for life in lives:
        life.cancel()
    await asyncio.gather(*lives, return_exceptions=True)
    return settled * 1000, statistics.median(absorbed) * 1000


def settle(bootstrap: str, size: int) -> tuple[float, float]:
    """How long until all members have their assignment, and until they have again after one left, in ms."""
    host, _, port = bootstrap.rpartition(":")
    return uvloop.run(_settle(host, int(port), size))
