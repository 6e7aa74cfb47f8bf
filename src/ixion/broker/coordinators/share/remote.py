"""Requests to a share coordinator on another broker, each about one share partition, as Kafka sends them.

A broker that cannot be reached gives COORDINATOR_NOT_AVAILABLE; `router` repeats the request.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Final, Protocol, TypeVar, cast

from ixion.broker.coordinators.share.coordinator import Summary
from ixion.broker.coordinators.share.runs import Runs
from ixion.broker.replica.broker_channels import BrokerChannels
from ixion.broker.replica.share_persister import SharePartitionKey, ShareState, StateBatch, StateUpdate
from ixion.clients.faults import error_code
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.protocol.messages import k83_initialize_share_group_state as k83
from ixion.language.protocol.messages import k84_read_share_group_state as k84
from ixion.language.protocol.messages import k85_write_share_group_state as k85
from ixion.language.protocol.messages import k86_delete_share_group_state as k86
from ixion.language.protocol.messages import k87_read_share_group_state_summary as k87
from ixion.language.protocol.notation import Struct
from ixion.language.protocol.registry import ApiKey

logger = logging.getLogger(__name__)

A = TypeVar("A")
Answer = Callable[[ErrorCode, A | None], None]
ANY_LEADER: Final = -1


class Result(Protocol):
    @property
    def error_code(self) -> int: ...


async def read(
    channels: BrokerChannels, broker: int, key: SharePartitionKey, leader_epoch: int, answer: Answer[ShareState]
) -> None:
    part = k84.PartitionData(partition=key.partition, leader_epoch=leader_epoch)
    topic = k84.ReadStateData(topic_id=key.topic_id, partitions=(part,))
    request = k84.ReadShareGroupStateRequest(group_id=key.group, topics=(topic,))
    got = await _ask(channels, broker, ApiKey.READ_SHARE_GROUP_STATE, request)
    code, result = _only(None if got is None else cast(k84.ReadShareGroupStateResponse, got).results)
    if result is None:
        answer(code, None)
        return
    found = cast(k84.PartitionResult, result)
    batches = tuple(
        StateBatch(each.first_offset, each.last_offset, each.delivery_state, each.delivery_count, each.due_ms)
        for each in found.state_batches
    )
    answer(code, ShareState(state_epoch=found.state_epoch, start_offset=found.start_offset, batches=batches))


async def write(
    channels: BrokerChannels, broker: int, key: SharePartitionKey, update: StateUpdate, answer: Answer[None]
) -> None:
    part = k85.PartitionData(
        partition=key.partition,
        state_epoch=update.state_epoch,
        leader_epoch=update.leader_epoch,
        start_offset=update.start_offset,
        delivery_complete_count=update.delivery_complete_count,
        state_batches=tuple(
            k85.StateBatch(
                first_offset=first, last_offset=last, delivery_state=state, delivery_count=deliveries, due_ms=due_ms
            )
            for first, last, state, deliveries, due_ms in Runs(update.batches)  # so none overlap
        ),
    )
    topic = k85.WriteStateData(topic_id=key.topic_id, partitions=(part,))
    request = k85.WriteShareGroupStateRequest(group_id=key.group, topics=(topic,))
    got = await _ask(channels, broker, ApiKey.WRITE_SHARE_GROUP_STATE, request)
    answer(_only(None if got is None else cast(k85.WriteShareGroupStateResponse, got).results)[0], None)


async def initialize(
    channels: BrokerChannels,
    broker: int,
    key: SharePartitionKey,
    state_epoch: int,
    start_offset: int,
    answer: Answer[None],
) -> None:
    part = k83.PartitionData(partition=key.partition, state_epoch=state_epoch, start_offset=start_offset)
    topic = k83.InitializeStateData(topic_id=key.topic_id, partitions=(part,))
    request = k83.InitializeShareGroupStateRequest(group_id=key.group, topics=(topic,))
    got = await _ask(channels, broker, ApiKey.INITIALIZE_SHARE_GROUP_STATE, request)
    answer(_only(None if got is None else cast(k83.InitializeShareGroupStateResponse, got).results)[0], None)


async def delete(channels: BrokerChannels, broker: int, key: SharePartitionKey, answer: Answer[None]) -> None:
    topic = k86.DeleteStateData(topic_id=key.topic_id, partitions=(k86.PartitionData(partition=key.partition),))
    request = k86.DeleteShareGroupStateRequest(group_id=key.group, topics=(topic,))
    got = await _ask(channels, broker, ApiKey.DELETE_SHARE_GROUP_STATE, request)
    answer(_only(None if got is None else cast(k86.DeleteShareGroupStateResponse, got).results)[0], None)


async def summary(channels: BrokerChannels, broker: int, key: SharePartitionKey, answer: Answer[Summary]) -> None:
    part = k87.PartitionData(partition=key.partition, leader_epoch=ANY_LEADER)
    topic = k87.ReadStateSummaryData(topic_id=key.topic_id, partitions=(part,))
    request = k87.ReadShareGroupStateSummaryRequest(group_id=key.group, topics=(topic,))
    got = await _ask(channels, broker, ApiKey.READ_SHARE_GROUP_STATE_SUMMARY, request)
    code, result = _only(None if got is None else cast(k87.ReadShareGroupStateSummaryResponse, got).results)
    if result is None:
        answer(code, None)
        return
    found = cast(k87.PartitionResult, result)
    seen = Summary(
        state_epoch=found.state_epoch,
        leader_epoch=found.leader_epoch,
        start_offset=found.start_offset,
        complete_count=found.delivery_complete_count,
    )
    answer(code, seen)


async def _ask(channels: BrokerChannels, broker: int, api: ApiKey, request: Struct) -> Struct | None:
    try:
        return await channels.ask(broker, api, request, oldest=api.oldest, newest=api.newest)
    except KafkaError as error:
        logger.info("the share coordinator on broker %d is asked again: %s", broker, error)
    except Exception:  # such as an unreadable certificate: the caller must get an answer
        logger.exception("the share coordinator on broker %d is asked again", broker)
    return None


class _Topic(Protocol):
    @property
    def partitions(self) -> tuple[Result, ...]: ...


def _only(topics: tuple[_Topic, ...] | None) -> tuple[ErrorCode, Result | None]:
    """The result of the one partition of an answer; None with an error."""
    if topics is None or not topics or not topics[0].partitions:
        return ErrorCode.COORDINATOR_NOT_AVAILABLE, None
    result = topics[0].partitions[0]
    code = error_code(result.error_code)
    return code, None if code else result
