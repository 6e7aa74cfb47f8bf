from __future__ import annotations

from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.messages.k61_describe_producers import (
    DescribeProducersRequest,
    ProducerState,
    TopicRequest,
)
from ixion.language.protocol.registry import ApiKey
from tests.apis.raw import Raw
from tests.apis.txn_kit import batch, end, init, produce


def describe(raw: Raw, topic: str, number: int) -> tuple[str, dict[int, ProducerState]]:
    request = DescribeProducersRequest(topics=(TopicRequest(name=topic, partition_indexes=(number,)),))
    (answered,) = raw.ask(ApiKey.DESCRIBE_PRODUCERS, 0, request).topics[0].partitions
    return ErrorCode(answered.error_code).name, {each.producer_id: each for each in answered.active_producers}


def open_since(raw: Raw, number: int, producer_id: int) -> int:
    return describe(raw, "t", number)[1][producer_id].current_txn_start_offset


def test_what_a_partition_remembers(raw: Raw) -> None:
    producer_id, epoch = init(raw, "described")
    produce(raw, "described", batch(producer_id, epoch), number=2)
    code, producers = describe(raw, "t", 2)
    state = producers[producer_id]
    assert code == "NONE"
    assert (state.producer_epoch, state.last_sequence, state.last_timestamp) == (epoch, 0, 1_700_000_000_000)
    assert state.current_txn_start_offset == 0
    end(raw, "described", producer_id, epoch, True, 5)
    state = describe(raw, "t", 2)[1][producer_id]
    assert (state.producer_epoch, state.current_txn_start_offset, state.coordinator_epoch) == (epoch + 1, -1, 0)


def test_what_is_not_there(raw: Raw) -> None:
    assert describe(raw, "t", 77) == ("UNKNOWN_TOPIC_OR_PARTITION", {})
    assert describe(raw, "nowhere", 0) == ("UNKNOWN_TOPIC_OR_PARTITION", {})
