"""Many acknowledgements leave the loop to others in between, and come before the end of the session."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ixion.broker.apis import share_calls
from ixion.broker.share import acknowledgement
from ixion.broker.share.leader import ShareLeader
from ixion.broker.startup.broker import Broker as RealBroker
from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.messages import k78_share_fetch as k78
from ixion.language.protocol.messages import k79_share_acknowledge as k79
from ixion.testing.broker import Broker
from tests.apis.share_kit import ACCEPT, Member, initialize, parts_of
from tests.apis.test_k01_fetch import filled, id_of

PARTITIONS = 4
END = -1


def fetched(topic_id: bytes, *batches: k78.AcknowledgementBatch) -> tuple[k78.FetchTopic, ...]:
    parts = tuple(
        k78.FetchPartition(partition_index=number, acknowledgement_batches=batches) for number in range(PARTITIONS)
    )
    return (k78.FetchTopic(topic_id=topic_id, partitions=parts),)


def end_by_fetch(member: Member) -> list[int]:
    accepted = k78.AcknowledgementBatch(first_offset=0, last_offset=0, acknowledge_types=(ACCEPT,))
    answer = member.fetch(topics=fetched(member.topic_id, accepted), share_session_epoch=END, max_wait_ms=0)
    return [each.acknowledge_error_code for each in parts_of(answer)]


def end_by_acknowledging(member: Member) -> list[int]:
    accepted = k79.AcknowledgementBatch(first_offset=0, last_offset=0, acknowledge_types=(ACCEPT,))
    parts = tuple(
        k79.AcknowledgePartition(partition_index=number, acknowledgement_batches=(accepted,))
        for number in range(PARTITIONS)
    )
    topics = (k79.AcknowledgeTopic(topic_id=member.topic_id, partitions=parts),)
    answer = member.acknowledge(topics=topics, share_session_epoch=END)
    return [each.error_code for topic in answer.responses for each in topic.partitions]


@pytest.mark.parametrize("end", [end_by_fetch, end_by_acknowledging], ids=["fetch", "acknowledge"])
def test_many_partitions_take_several_turns(broker: Broker, monkeypatch: pytest.MonkeyPatch, end: Any) -> None:
    name = filled(broker, f"turns-{end.__name__}", 1, PARTITIONS)
    topic_id = id_of(broker, name)
    initialize(broker, name, topic_id, PARTITIONS)
    one, other = Member(broker, name, topic_id, "one"), Member(broker, name, topic_id, "other")
    taken = 0
    while taken < PARTITIONS:
        answer = one.fetch(topics=fetched(topic_id), max_wait_ms=100)
        taken += sum(len(each.acquired_records) for each in parts_of(answer))
    seen: list[str] = []
    real_acknowledge = ShareLeader.acknowledge

    def acknowledge(leader: ShareLeader, *given: Any) -> None:
        seen.append("acknowledged")
        leader._manager.call_soon(seen.append, "others")
        real_acknowledge(leader, *given)

    async def set_turn(real: RealBroker, length_ns: int) -> int:
        lane = real.parts.server._shared.lane
        before, lane._turn_ns = lane._turn_ns, length_ns
        return before

    monkeypatch.setattr(ShareLeader, "acknowledge", acknowledge)
    before = broker.call(lambda real: set_turn(real, -1))  # a turn is one partition
    try:
        assert end(one) == [0] * PARTITIONS
    finally:
        broker.call(lambda real: set_turn(real, before))
    assert seen[: 2 * PARTITIONS - 1] == ["acknowledged", "others"] * (PARTITIONS - 1) + ["acknowledged"]
    assert [len(each.acquired_records) for each in parts_of(other.fetch(topics=fetched(topic_id), max_wait_ms=0))] == [
        0
    ] * PARTITIONS
    one.close()
    other.close()


def test_many_batches_are_checked_in_several_turns(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    name = filled(broker, "turns-batches", 4, 1)
    topic_id = id_of(broker, name)
    initialize(broker, name, topic_id, 1)
    member = Member(broker, name, topic_id, "one")
    topics = (
        k78.FetchTopic(
            topic_id=topic_id, partitions=(k78.FetchPartition(partition_index=0, acknowledgement_batches=()),)
        ),
    )
    while not any(each.acquired_records for each in parts_of(member.fetch(topics=topics, max_wait_ms=100))):
        pass
    seen: list[str] = []
    real_check = acknowledgement.check

    def check(said: list[Any], renews: bool) -> None:
        seen.append("checked")
        asyncio.get_running_loop().call_soon(seen.append, "others")
        real_check(said, renews)

    async def set_turn(real: RealBroker, length_ns: int) -> int:
        lane = real.parts.server._shared.lane
        before, lane._turn_ns = lane._turn_ns, length_ns
        return before

    def acknowledge(*offsets: int) -> int:
        batches = tuple(
            k79.AcknowledgementBatch(first_offset=each, last_offset=each, acknowledge_types=(ACCEPT,))
            for each in offsets
        )
        part = k79.AcknowledgePartition(partition_index=0, acknowledgement_batches=batches)
        answer = member.acknowledge(topics=(k79.AcknowledgeTopic(topic_id=topic_id, partitions=(part,)),))
        return int(answer.responses[0].partitions[0].error_code)

    monkeypatch.setattr(share_calls, "AT_ONCE", 1)
    monkeypatch.setattr(share_calls, "check", check)
    before = broker.call(lambda real: set_turn(real, -1))
    try:
        assert acknowledge(0, 2, 1) == ErrorCode.INVALID_REQUEST, "they are not in order, across two steps"
        seen.clear()
        assert acknowledge(0, 1, 3) == ErrorCode.NONE
    finally:
        broker.call(lambda real: set_turn(real, before))
    assert seen[:5] == ["checked", "others", "checked", "others", "checked"]
    member.close()
