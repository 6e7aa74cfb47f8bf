"""What the broker does later for a client, when the right that was checked is taken away meanwhile."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from ixion.broker.apis.served import SERVED
from ixion.broker.log.reader import read
from ixion.broker.log.view import Bound
from ixion.broker.startup.broker import Broker as RealBroker
from ixion.clients import ErrorCode, KafkaError, Producer, TopicPartition
from ixion.language.model.acl_names import Operation, PatternKind, ResourceKind
from ixion.language.protocol.messages import k78_share_fetch as k78
from ixion.language.protocol.messages.k01_fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from ixion.language.protocol.messages.k09_offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchResponse,
)
from ixion.language.protocol.messages.k19_create_topics import (
    CreatableTopic,
    CreatableTopicConfig,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from ixion.language.protocol.messages.k31_delete_acls import DeleteAclsFilter, DeleteAclsRequest, DeleteAclsResponse
from ixion.language.records.batches import iter_batches
from ixion.language.records.control import ControlType, control_type
from ixion.testing.broker import Broker
from tests.apis.guards.secured import AskingAs, allow, rule, secured
from tests.apis.share_kit import initialize, parts_of
from tests.apis.share_kit import topic as share_topic
from tests.apis.test_k01_fetch import id_of
from tests.delay.test_rights import send
from tests.delay.world import after, cancel
from tests.log.support import stored


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with secured({"transaction.abort.timed.out.transaction.cleanup.interval.ms": "100"}) as running:
        yield running


def name() -> str:
    return f"t{random.randrange(10**9)}"


def create(root: AskingAs, topic: str, **configs: str) -> str:
    settings = tuple(CreatableTopicConfig(name=key.replace("_", "."), value=value) for key, value in configs.items())
    wish = CreatableTopic(name=topic, num_partitions=1, replication_factor=1, assignments=(), configs=settings)
    assert root.ask(CreateTopicsRequest(topics=(wish,)), CreateTopicsResponse).topics[0].error_code == 0
    return topic


def revoke(root: AskingAs, name: str, kind: ResourceKind = ResourceKind.TOPIC) -> None:
    wish = DeleteAclsFilter(
        resource_type_filter=kind,
        resource_name_filter=name,
        pattern_type_filter=PatternKind.LITERAL,
        principal_filter=None,
        host_filter=None,
        operation=Operation.ANY,
        permission_type=1,
    )
    answer = root.ask(DeleteAclsRequest(filters=(wish,)), DeleteAclsResponse)
    assert len(answer.filter_results[0].matching_acls) == 1


def values(broker: Broker, topic: str) -> list[bytes]:
    async def look(real: RealBroker) -> list[bytes]:
        return [value for _, value in stored(real.parts.replicas.partitions[topic, 0].log)]

    return broker.call(look)


def await_value(broker: Broker, topic: str, value: bytes, count: int = 1) -> None:
    while values(broker, topic).count(value) < count:
        with AskingAs(broker.bootstrap, "root"):
            pass


def test_an_accepted_delayed_record_is_delivered(broker: Broker) -> None:
    with AskingAs(broker.bootstrap, "root") as root, AskingAs(broker.bootstrap, "alice") as alice:
        topic = create(root, name(), delivery_delay_mode="record")
        allow(root, rule("alice", Operation.WRITE, ResourceKind.TOPIC, topic))
        assert send(alice, after(b"later", 300), topic) == ErrorCode.NONE
        revoke(root, topic)
        assert send(alice, after(b"more", 0), topic) == ErrorCode.TOPIC_AUTHORIZATION_FAILED
        await_value(broker, topic, b"later")


def test_an_accepted_record_of_a_schedule_topic_is_delivered_to_its_target(broker: Broker) -> None:
    with AskingAs(broker.bootstrap, "root") as root, AskingAs(broker.bootstrap, "alice") as alice:
        target = create(root, name())
        topic = create(root, name(), delivery_delay_mode="record", delivery_delay_target=target)
        for each in (topic, target):
            allow(root, rule("alice", Operation.WRITE, ResourceKind.TOPIC, each))
        assert send(alice, after(b"later", 300), topic) == ErrorCode.NONE
        revoke(root, target)
        assert send(alice, after(b"more", 0), topic) == ErrorCode.TOPIC_AUTHORIZATION_FAILED
        await_value(broker, target, b"later")


def test_a_recurring_record_goes_on_until_it_is_cancelled(broker: Broker) -> None:
    with AskingAs(broker.bootstrap, "root") as root, AskingAs(broker.bootstrap, "alice") as alice:
        topic = create(root, name(), delivery_delay_mode="record")
        allow(root, rule("alice", Operation.WRITE, ResourceKind.TOPIC, topic))
        assert send(alice, after(b"tick", 10, id=b"clock", every=b"1s"), topic) == ErrorCode.NONE
        revoke(root, topic)
        await_value(broker, topic, b"tick", 2)
        assert send(alice, cancel(b"clock"), topic) == ErrorCode.TOPIC_AUTHORIZATION_FAILED
        assert send(root, cancel(b"clock"), topic) == ErrorCode.NONE


def as_alice(broker: Broker, **settings: Any) -> Producer:
    return Producer(
        broker.bootstrap,
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="PLAIN",
        sasl_username="alice",
        sasl_password="alice-secret",
        **settings,
    )


def test_a_transaction_that_may_not_be_ended_any_more_is_aborted_after_its_timeout(broker: Broker) -> None:
    with AskingAs(broker.bootstrap, "root") as root:
        topic = create(root, name())
        allow(root, rule("alice", Operation.WRITE, ResourceKind.TOPIC, topic))
        allow(root, rule("alice", Operation.WRITE, ResourceKind.TRANSACTIONAL_ID, topic))
        with as_alice(broker, transactional_id=topic, transaction_timeout_ms=1500) as producer:
            producer.init_transactions()
            producer.begin_transaction()
            producer.send_and_wait(topic, b"unfinished")
            revoke(root, topic, ResourceKind.TRANSACTIONAL_ID)
            with pytest.raises(KafkaError) as refused:
                producer.commit_transaction()
            assert refused.value.code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
            with contextlib.suppress(KafkaError):
                producer.close()
        await_marker(broker, topic)
        assert markers(broker, topic) == [ControlType.ABORT]


def markers(broker: Broker, topic: str) -> list[ControlType]:
    async def look(real: RealBroker) -> list[ControlType]:
        data = read(real.parts.replicas.partitions[topic, 0].log, 0, 1 << 20, Bound.END)
        return [control_type(batch) for batch in iter_batches(data.records) if batch.is_control]

    return broker.call(look)


def await_marker(broker: Broker, topic: str) -> None:
    while not markers(broker, topic):
        with AskingAs(broker.bootstrap, "root"):
            pass


def test_each_record_of_a_sink_is_checked(broker: Broker) -> None:
    """A pipeline's topic sink is a producer with the login of the pipeline: it writes nothing ahead of the broker."""
    with AskingAs(broker.bootstrap, "root") as root:
        topic = create(root, name())
        allow(root, rule("alice", Operation.WRITE, ResourceKind.TOPIC, topic))
        producer = as_alice(broker)
        producer.send_and_wait(topic, b"row")
        revoke(root, topic)
        with pytest.raises(KafkaError) as refused:
            producer.send_and_wait(topic, b"later")
        assert refused.value.code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
        with contextlib.suppress(KafkaError):
            producer.close()
        assert values(broker, topic) == [b"row"]


def test_no_request_is_forwarded() -> None:
    """Kafka's Envelope carries the principal of another client. ixion neither sends nor takes one."""
    assert "ENVELOPE" not in {key.name for key in SERVED}
    assert 58 not in {int(key) for key in SERVED}


def answer_after_removal(
    broker: Broker, topic: str, removed: Callable[[AskingAs], None], ask: Callable[[AskingAs], Any]
) -> Any:
    """The answer to a fetch of alice that waits, when her right is taken away and then a record comes."""

    async def waiting(real: RealBroker) -> int:
        shares = real.parts.share_leaders.made
        return real.parts.replicas.fetch_purgatory.delayed + (0 if shares is None else shares.purgatory.delayed)

    alice, root = AskingAs(broker.bootstrap, "alice"), AskingAs(broker.bootstrap, "root")
    with alice, root, ThreadPoolExecutor(1) as thread:
        answer = thread.submit(ask, alice)
        while broker.call(waiting) == 0:
            assert not answer.done(), answer.result()
        removed(root)
        assert send(root, (b"secret", []), topic) == ErrorCode.NONE
        return answer.result(60)


def test_a_fetch_that_waits_gets_nothing_once_the_right_is_taken_away(broker: Broker) -> None:
    def ask(alice: AskingAs) -> FetchResponse:
        part = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1 << 20)
        topics = (FetchTopic(topic=topic, partitions=(part,)),)
        request = FetchRequest(max_wait_ms=60_000, min_bytes=1, max_bytes=1 << 20, topics=topics)
        return alice.ask(request, FetchResponse, 12)

    with AskingAs(broker.bootstrap, "root") as root:
        topic = create(root, name())
        allow(root, rule("alice", Operation.READ, ResourceKind.TOPIC, topic))
    answer = answer_after_removal(broker, topic, lambda root: revoke(root, topic), ask)
    (part,) = answer.responses[0].partitions
    assert part.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
    assert not part.records


@pytest.mark.parametrize("kind", [ResourceKind.TOPIC, ResourceKind.GROUP])
def test_a_share_fetch_that_waits_gets_nothing_once_the_right_is_taken_away(broker: Broker, kind: ResourceKind) -> None:
    def ask(alice: AskingAs) -> k78.ShareFetchResponse:
        request = k78.ShareFetchRequest(
            group_id=topic,
            member_id="m",
            share_session_epoch=0,
            max_wait_ms=60_000,
            min_bytes=1,
            max_bytes=1 << 20,
            max_records=500,
            batch_size=0,
            topics=(share_topic(topic_id),),
            forgotten_topics_data=(),
        )
        return alice.ask(request, k78.ShareFetchResponse)

    with AskingAs(broker.bootstrap, "root") as root:
        topic = create(root, name())
        for each in (ResourceKind.TOPIC, ResourceKind.GROUP):
            allow(root, rule("alice", Operation.READ, each, topic))
    topic_id = id_of(broker, topic)
    initialize(broker, topic, topic_id)
    answer = answer_after_removal(broker, topic, lambda root: revoke(root, topic, kind), ask)
    if kind == ResourceKind.GROUP:
        assert answer.error_code == ErrorCode.GROUP_AUTHORIZATION_FAILED
        assert answer.responses == ()
    else:
        (part,) = parts_of(answer)
        assert part.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
        assert not part.records


def test_offsets_of_a_transaction_count_although_the_right_to_the_group_is_taken_away(broker: Broker) -> None:
    """The transaction is one change: its records and its offsets count together, or not at all."""
    with AskingAs(broker.bootstrap, "root") as root, AskingAs(broker.bootstrap, "alice") as alice:
        topic = create(root, name())
        place = TopicPartition(topic, 0)
        for operation, kind in (
            (Operation.WRITE, ResourceKind.TOPIC),
            (Operation.READ, ResourceKind.TOPIC),
            (Operation.WRITE, ResourceKind.TRANSACTIONAL_ID),
            (Operation.READ, ResourceKind.GROUP),
        ):
            allow(root, rule("alice", operation, kind, topic))
        with as_alice(broker, transactional_id=topic) as producer:
            producer.init_transactions()
            producer.begin_transaction()
            producer.send_and_wait(topic, b"copied")
            producer.send_offsets({place: 7}, topic)
            revoke(root, topic, ResourceKind.GROUP)
            producer.commit_transaction()
            assert committed(root, topic) == [7]
            assert committed(alice, topic) == []
            producer.begin_transaction()
            with pytest.raises(KafkaError) as refused:
                producer.send_offsets({place: 8}, topic)
            assert refused.value.code == ErrorCode.GROUP_AUTHORIZATION_FAILED
            with contextlib.suppress(KafkaError):
                producer.abort_transaction()
        assert committed(root, topic) == [7]


def committed(asking: AskingAs, group: str) -> list[int]:
    wish = OffsetFetchRequestGroup(group_id=group, topics=None)
    answer = asking.ask(OffsetFetchRequest(groups=(wish,), require_stable=True), OffsetFetchResponse)
    return [each.committed_offset for topic in answer.groups[0].topics for each in topic.partitions]
