"""Internal topics: nobody writes them from outside, and nothing in them keeps a broker from starting."""

from __future__ import annotations

import urllib.request
from pathlib import Path

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from ixion.broker.replica.internal_topic import GROUP_OFFSETS, INTERNAL, TRANSACTION_STATE
from ixion.broker.startup.broker import Broker as RealBroker
from ixion.config.errors import InvalidSettingError
from ixion.config.listeners import listeners
from ixion.config.sources import load
from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.messages.k00_produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ixion.language.protocol.registry import ApiKey
from ixion.language.records.builder import BatchBuilder
from ixion.testing import Broker
from tests.apis.raw import Raw
from tests.web.prometheus import parse, value

WRITERS = "ixion.internal.topic.write.listeners"
TWO_LISTENERS = {
    "listeners": "PLAINTEXT://127.0.0.1:0,TOOLS://127.0.0.1:0",
    "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,TOOLS:PLAINTEXT",
}


def garbage() -> bytes:
    builder = BatchBuilder()
    builder.append(b"\x00\x00\x00\x01x", b"garbage", timestamp=1)
    builder.append(b"garbage", b"garbage", timestamp=1)
    return builder.build()


async def make_internal_topics(real: RealBroker) -> None:
    for topic in real.parts.internal_topics.values():
        await topic.ensure()


def produce(bootstrap: str, topic: str, client_id: str) -> int:
    data = (PartitionProduceData(index=0, records=garbage()),)
    topics = (TopicProduceData(name=topic, partition_data=data),)
    with Raw(bootstrap, client_id) as raw:
        answer = raw.ask(ApiKey.PRODUCE, 12, ProduceRequest(acks=-1, timeout_ms=5_000, topic_data=topics))
    code: int = answer.responses[0].partition_responses[0].error_code
    return code


@pytest.mark.parametrize("topic", sorted(INTERNAL))
def test_a_client_name_is_no_right(topic: str) -> None:
    with Broker() as broker:
        broker.call(make_internal_topics)
        assert produce(broker.bootstrap, topic, "__admin_client") == ErrorCode.INVALID_TOPIC_EXCEPTION


def test_a_listener_may_be_set_for_it() -> None:
    async def second(real: RealBroker) -> str:
        endpoint = real.endpoints[1]
        return f"{endpoint.host}:{endpoint.port}"

    with Broker({**TWO_LISTENERS, WRITERS: "tools"}) as broker:
        broker.call(make_internal_topics)
        assert produce(broker.bootstrap, GROUP_OFFSETS, "__admin_client") == ErrorCode.INVALID_TOPIC_EXCEPTION
        assert produce(broker.call(second), GROUP_OFFSETS, "anybody") == ErrorCode.NONE


def test_a_listener_that_is_not_there_is_refused() -> None:
    with pytest.raises(InvalidSettingError, match="one of the listeners: PLAINTEXT"):
        listeners(load(assignments=[f"{WRITERS}=NOWHERE"]).config)


def test_a_broker_starts_with_unreadable_records_in_internal_topics(tmp_path: Path) -> None:
    def committed(broker: Broker) -> int:
        consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "g"})
        (found,) = consumer.committed([TopicPartition("t", 0)], timeout=30)
        consumer.close()
        offset: int = found.offset
        return offset

    settings = {WRITERS: "PLAINTEXT", "offsets.topic.num.partitions": 1, "transaction.state.log.num.partitions": 1}
    with Broker(settings, data=tmp_path) as broker:
        broker.create_topic("t")
        broker.call(make_internal_topics)
        consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "g"})
        consumer.commit(offsets=[TopicPartition("t", 0, 7)], asynchronous=False)
        consumer.close()
        for topic in INTERNAL:
            assert produce(broker.bootstrap, topic, "anybody") == ErrorCode.NONE
    with Broker(settings, data=tmp_path, metrics=True) as broker:
        assert committed(broker) == 7
        producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": "x"})
        producer.init_transactions(30)
        producer.begin_transaction()
        producer.produce("t", b"v")
        producer.commit_transaction(30)
        with urllib.request.urlopen(broker.metrics_url, timeout=30) as page:
            metrics = parse(page.read().decode())
        for topic in (GROUP_OFFSETS, TRANSACTION_STATE):
            assert value(metrics, "ixion_coordinator_records_skipped_total", topic=topic) == 2
