"""The page of one broker shows the whole cluster, and names the brokers that do not answer."""

from __future__ import annotations

import asyncio
import json
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any, cast

import pytest
from confluent_kafka import Consumer, Producer

from ixion.broker.metadata.image import ClusterImage
from ixion.broker.replica.broker_channels import BrokerChannels
from ixion.broker.web.console.others import SILENCE_S, Others
from ixion.clients import ShareConsumer
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.protocol.messages.k35_describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse
from ixion.language.protocol.registry import ApiKey
from ixion.testing import Broker, Cluster
from ixion.timer.clock import ManualClock
from tests.web.test_console import events_of

RECORDS = 60


@pytest.fixture(scope="module")
def three() -> Iterator[Cluster]:
    """Each broker leads two partitions of `orders` that no other has."""
    with Cluster(3, {"auto.leader.rebalance.enable": False}, metrics=True) as running:
        running.create_topic("orders", 6, replication=1)
        producer = Producer({"bootstrap.servers": running.bootstrap})
        for number in range(RECORDS):
            producer.produce("orders", json.dumps({"n": number}), key=f"k{number}", partition=number % 6)
        assert producer.flush(60) == 0
        yield running


def get(broker: Broker, path: str, kind: str = "application/json") -> tuple[int, str]:
    address = broker.metrics_url.removesuffix("/metrics") + path
    try:
        with urllib.request.urlopen(urllib.request.Request(address, headers={"Accept": kind}), timeout=60) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def data(broker: Broker, path: str) -> Any:
    status, body = get(broker, f"/api/v1{path}")
    assert status == 200, body
    return json.loads(body)


def test_every_broker_is_asked_about_its_disks(three: Cluster) -> None:
    rows = data(three.brokers[1], "/brokers")["brokers"]
    assert [each["id"] for each in rows] == [1, 2, 3]
    assert all(each["answered"] and each["disk_bytes"] >= each["free_bytes"] > 0 for each in rows), rows
    assert [each["answer_ms"] is None for each in rows] == [each["is_this"] for each in rows]
    assert "did not answer" not in get(three.brokers[1], "/brokers", "text/html")[1]


def test_partitions_and_records_of_other_brokers(three: Cluster) -> None:
    for broker in three.brokers.values():
        topic = data(broker, "/topics/orders")
        assert len({each["leader"] for each in topic["partitions"]}) == 3
        assert [(each["start"], each["end"]) for each in topic["partitions"]] == [(0, RECORDS // 6)] * 6
        assert all(each["bytes"] > 0 and not each["silent"] for each in topic["partitions"])
        found = data(broker, "/topics/orders/records?limit=100")
        assert (len(found["records"]), found["silent"], found["complete"]) == (RECORDS, [], True)
        found = data(broker, "/topics/orders/records?filter=value.n%20in%20(4,5,6)")
        assert sorted(each["key"]["text"] for each in found["records"]) == ["k4", "k5", "k6"]
        for number in range(6):
            one = data(broker, f"/topics/orders/{number}/9")
            assert json.loads(one["value"]["text"])["n"] == 54 + number
            (first, *_) = data(broker, f"/topics/orders/records?partition={number}&since=-1h")["records"]
            assert first["offset"] == 0


def test_groups_of_every_kind_on_any_broker(three: Cluster, request: pytest.FixtureRequest) -> None:
    names = [f"readers-{number}" for number in range(6)]
    consumers: list[Consumer] = []

    def close() -> None:
        for each in consumers:
            each.close()

    request.addfinalizer(close)
    for number, name in enumerate(names):
        settings = {"bootstrap.servers": three.bootstrap, "group.id": name, "auto.offset.reset": "earliest"}
        if number % 2:
            settings["group.protocol"] = "consumer"
        consumer = Consumer(settings)
        consumers.append(consumer)
        consumer.subscribe(["orders"])
        got = 0
        while got < RECORDS:
            message = consumer.poll(1)
            got += message is not None and message.error() is None
        consumer.commit(asynchronous=False)
    with ShareConsumer(three.bootstrap, group="queue", topics=["orders"]) as share:
        share.poll(0.1)
        for broker in three.brokers.values():
            rows = {each["group"]: each for each in data(broker, "/groups")["groups"]}
            assert set(rows) == {*names, "queue"}
            assert {each["protocol"] for each in rows.values()} == {"classic", "consumer", "share"}
            for number, name in enumerate(names):
                group = data(broker, f"/groups/{name}")
                assert group["protocol"] == ("consumer" if number % 2 else "classic")
                assert (group["state"], group["lag"], group["offsets_count"]) == ("Stable", 0, 6)
                assert len(group["members"][0]["assigned"]) == 6
                assert sum(each["end"] for each in group["offsets"]) == RECORDS
            group = data(broker, "/groups/queue")
            assert (group["protocol"], len(group["members"])) == ("share", 1)
            assert get(broker, "/groups/queue", "text/html")[0] == 200
            assert get(broker, "/groups/none", "text/html")[0] == 404
    coordinators = [
        {name: data(each, f"/groups/{name}")["broker"] for name in names} for each in three.brokers.values()
    ]
    assert coordinators[0] == coordinators[1] == coordinators[2]


def test_a_tail_follows_partitions_of_other_brokers(three: Cluster) -> None:
    three.create_topic("news", 3, replication=1)
    producer = Producer({"bootstrap.servers": three.bootstrap})

    async def run() -> set[int]:
        seen: set[int] = set()
        after = "0:0,1:0,2:0"
        while seen != {0, 1, 2}:
            (event,) = await events_of(three.brokers[1], f"/topics/news/tail?after={after}", 1)
            seen |= {each["partition"] for each in json.loads(event["data"])["records"]}
            after = event["id"]
        return seen

    for number in range(3):
        producer.produce("news", b"x", partition=number)
    assert producer.flush(60) == 0
    asyncio.run(run())


class Peers:
    """Stands for `BrokerChannels`: broker 2 answers, 3 refuses, 4 never answers."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    async def ask(self, broker: int, *_: Any, **__: Any) -> DescribeLogDirsResponse:
        self.asked.append(broker)
        if broker == 3:
            raise KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, "connection refused")
        if broker == 4:
            await asyncio.Event().wait()
        return DescribeLogDirsResponse(error_code=ErrorCode.NONE, results=())

    def close(self) -> None:
        self.asked.append(-1)


def test_a_broker_that_does_not_answer_is_named_and_left_alone_for_a_while() -> None:
    class Image:
        brokers = dict.fromkeys((1, 2, 3, 4))

    clock = ManualClock()
    peers = Peers()
    made: list[Peers] = []

    def make() -> BrokerChannels:
        made.append(peers)
        return cast("BrokerChannels", peers)

    others = Others(cast("ClusterImage", Image()), 1, make, clock, patience_s=0.01)
    request = DescribeLogDirsRequest(topics=())

    async def ask() -> dict[int, str]:
        found = await others.ask_all(ApiKey.DESCRIBE_LOG_DIRS, request, oldest=1, newest=4)
        assert [each for each, reply in found.items() if reply.answer is not None] == [2]
        return {each: reply.why for each, reply in found.items()}

    async def run() -> None:
        silent = {2: "", 3: "broker 3: connection refused", 4: "broker 4 did not answer within 0.01 s"}
        assert await ask() == silent
        assert await ask() == silent
        assert peers.asked == [2, 3, 4, 2]
        clock.advance(int(SILENCE_S * 1000))
        assert await ask() == silent
        assert peers.asked == [2, 3, 4, 2, 2, 3, 4]
        others.close()
        assert (len(made), peers.asked[-1]) == (1, -1)

    asyncio.run(run())


def test_a_broker_that_is_alone_asks_nobody() -> None:
    with Broker(metrics=True) as broker:
        (row,) = data(broker, "/brokers")["brokers"]
        assert row["answered"]
        assert row["free_bytes"] > 0
        assert "This broker is alone" in get(broker, "/brokers", "text/html")[1]
