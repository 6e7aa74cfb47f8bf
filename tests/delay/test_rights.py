"""Rights to delayed records: Write on the topic schedules, replaces and cancels; nothing less does."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ixion.broker.schedules.note import Kind, read_note
from ixion.language.model.acl_names import Operation, ResourceKind
from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.codec.sink import joined
from ixion.language.protocol.messages.k00_produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from ixion.language.protocol.messages.k01_fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from ixion.language.protocol.messages.k19_create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from ixion.language.protocol.messages.k21_delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from ixion.language.records.batches import iter_batches
from ixion.testing.broker import Broker
from tests.apis.guards.secured import AskingAs, allow, rule, secured
from tests.delay.world import Sent, after, cancel, records

TOPIC = "reminders"
SIBLING = "__delay.reminders"
DAY_MS = 86_400_000


@pytest.fixture
def broker() -> Iterator[Broker]:
    configs = (CreatableTopicConfig(name="delivery.delay.mode", value="record"),)
    topic = CreatableTopic(name=TOPIC, num_partitions=1, replication_factor=1, assignments=(), configs=configs)
    with secured() as running, AskingAs(running.bootstrap, "root") as root:
        made = root.ask(CreateTopicsRequest(topics=(topic,)), CreateTopicsResponse)
        assert [each.error_code for each in made.topics] == [0]
        yield running


def send(asking: AskingAs, sent: Sent, topic: str = TOPIC) -> ErrorCode:
    data = PartitionProduceData(index=0, records=records(sent))
    request = ProduceRequest(
        acks=-1, timeout_ms=60_000, topic_data=(TopicProduceData(name=topic, partition_data=(data,)),)
    )
    while True:
        answer = asking.ask(request, ProduceResponse, 11)
        code = ErrorCode(answer.responses[0].partition_responses[0].error_code)
        if code != ErrorCode.LEADER_NOT_AVAILABLE:  # the notes are being read
            return code


def fetch(asking: AskingAs, topic: str) -> tuple[ErrorCode, list[int]]:
    """The code, and the kinds of the notes."""
    part = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
    request = FetchRequest(
        replica_id=-1,
        max_wait_ms=0,
        min_bytes=0,
        session_epoch=-1,
        topics=(FetchTopic(topic=topic, partitions=(part,)),),
    )
    found = asking.ask(request, FetchResponse, 12).responses[0].partitions[0]
    return ErrorCode(found.error_code), [read_note(view).kind for view in iter_batches(joined([found.records or b""]))]


def delete(asking: AskingAs, topic: str) -> ErrorCode:
    part = DeleteRecordsPartition(partition_index=0, offset=-1)
    request = DeleteRecordsRequest(topics=(DeleteRecordsTopic(name=topic, partitions=(part,)),), timeout_ms=60_000)
    answer = asking.ask(request, DeleteRecordsResponse, 2)
    return ErrorCode(answer.topics[0].partitions[0].error_code)


def test_a_stranger_cancels_and_sees_nothing_and_another_writer_may_cancel(broker: Broker) -> None:
    address = broker.bootstrap
    refused = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    with AskingAs(address, "root") as root, AskingAs(address, "alice") as alice, AskingAs(address, "bob") as bob:
        allow(
            root,
            rule("bob", Operation.WRITE, ResourceKind.TOPIC, TOPIC),
            rule("alice", Operation.READ, ResourceKind.TOPIC, TOPIC),
            rule("alice", Operation.DELETE, ResourceKind.TOPIC, TOPIC),
        )
        assert send(root, after(b"call back", DAY_MS, id=b"mine")) == ErrorCode.NONE
        for what in (b"mine", b"@0", b"*"):
            assert send(alice, cancel(what)) == refused
        assert send(alice, after(b"instead", 0, id=b"mine")) == refused, "a replacement is no way round"
        assert fetch(alice, SIBLING) == (refused, []), "to read the topic is not to read what waits"
        assert delete(alice, SIBLING) == refused
        assert fetch(root, SIBLING) == (ErrorCode.NONE, [Kind.WAITS])
        assert send(bob, cancel(b"mine")) == ErrorCode.NONE
        assert fetch(root, SIBLING) == (ErrorCode.NONE, [Kind.WAITS, Kind.CANCELS])


def test_what_waits_is_neither_written_nor_deleted_directly_even_by_a_super_user(broker: Broker) -> None:
    with AskingAs(broker.bootstrap, "root") as root:
        assert send(root, after(b"call back", DAY_MS)) == ErrorCode.NONE
        assert (
            send(root, (b"forged", [("x-schedule-note", b"x" * 17)]), SIBLING) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        )
        assert delete(root, SIBLING) == ErrorCode.INVALID_TOPIC_EXCEPTION
        assert fetch(root, SIBLING) == (ErrorCode.NONE, [Kind.WAITS])
