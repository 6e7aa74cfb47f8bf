"""What the live page may change, and how: by the requests of the protocol, and only where it is allowed."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition

from ixion.broker.startup.broker import Broker as RealBroker
from ixion.broker.web.console.bodies import MOST_VALUES, weighs_too_much
from ixion.testing import Broker
from tests.web.posts import get, post


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(metrics=True) as running:
        running.create_topic("orders", 3)
        running.create_topic("small", 1, max_message_bytes=1000)
        running.create_topic("jobs", 1, delivery_delay_mode="record")
        yield running


def records(broker: Broker, topic: str, partition: int) -> list[dict[str, Any]]:
    status, found = get(broker, f"/topics/{topic}/records?partition={partition}&offset=0&limit=500")
    assert status == 200, found
    return list(found["records"])


# Records.


def test_a_record_is_sent_as_it_was_given(broker: Broker) -> None:
    headers = [
        {"name": "trace", "value": "1"},
        {"name": "raw", "value": {"base64": "AP8="}},
        {"name": "none", "value": None},
    ]
    given = {
        "key": {"base64": "AAE="},
        "value": "é",
        "headers": headers,
        "partition": 2,
        "timestamp": 1_767_225_600_000,
    }
    status, found = post(broker, "/topics/orders/records", {"records": [given]})
    assert (status, found["written"], found["partitions"][0]["partition"]) == (200, 1, 2)
    offset = found["partitions"][0]["offset"]
    row = next(each for each in records(broker, "orders", 2) if each["offset"] == offset)
    assert row["key"] == {"kind": "bytes", "text": "AAE=", "size": 2, "cut": False}
    assert row["value"]["text"] == "é"
    assert [(each["name"], each["value"]["kind"]) for each in row["headers"]] == [
        ("trace", "text"),
        ("raw", "bytes"),
        ("none", "null"),
    ]
    assert row["timestamp"] == 1_767_225_600_000


def test_a_key_goes_to_the_partition_to_which_every_client_sends_it(broker: Broker) -> None:
    status, found = post(broker, "/topics/orders/records", {"records": [{"key": "order-17", "value": None}]})
    assert status == 200
    assert found["partitions"][0]["partition"] == 1_568_318_961 % 3


def test_the_lines_of_a_file(broker: Broker) -> None:
    broker.create_topic("lines", 1)
    assert post(broker, "/topics/lines/lines", {"format": "lines", "text": "one\r\n\ntwo\n"})[1]["written"] == 2
    exported = '{"topic": "x", "partition": 7, "offset": 3, "key": "k", "value": {"a": 1}, "headers": [["h", null]]}'
    status, found = post(broker, "/topics/lines/lines", {"format": "jsonl", "text": exported})
    assert (status, found["written"]) == (200, 1)  # the partition was that of another topic
    assert [each["value"]["text"] for each in records(broker, "lines", 0)] == ["one", "two", '{"a":1}']
    status, found = post(broker, "/topics/lines/lines", {"format": "jsonl", "text": '{"value": 1}\nno'})
    assert (status, found["error"][:18]) == (400, "line 2 is not JSON")
    assert len(records(broker, "lines", 0)) == 3


@pytest.mark.parametrize(
    ("body", "status", "said"),
    [
        ({}, 400, "needs 'records'"),
        ([], 400, "the body is an object"),
        ({"records": []}, 400, "1 to 1,000"),
        ({"records": [{}]}, 400, "needs 'value'"),
        ({"records": [{"value": 3}]}, 400, "value is text or an object with base64 or null"),
        ({"records": [{"value": {"base64": "?"}}]}, 400, "not base64"),
        ({"records": [{"value": "\ud800"}]}, 400, "surrogate"),
        ({"records": [{"value": "a", "partition": 3}]}, 400, "no partition 3"),
        ({"records": [{"value": "a", "partition": True}]}, 400, "whole number"),
        ({"records": [{"value": "a", "timestamp": 1 << 63}]}, 400, "whole number"),
        ({"records": [{"value": "a", "colour": 1}]}, 400, "no field 'colour'"),
        ({"records": [{"value": "a"}] * 1_001}, 400, "1 to 1,000"),
        ({"records": [{"value": "a", "headers": [{}]}]}, 400, "needs"),
        ({"records": [[]] * 30_000}, 413, "values in one request"),
    ],
    ids=str,
)
def test_what_cannot_be_sent_is_said(broker: Broker, body: Any, status: int, said: str) -> None:
    found, answer = post(broker, "/topics/orders/records", body)
    assert found == status
    assert said in answer["error"]


def test_what_the_broker_refuses_is_said(broker: Broker) -> None:
    status, found = post(broker, "/topics/small/records", {"records": [{"value": "x" * 2000}]})
    assert (status, "1000" in found["error"]) == (400, True), found
    assert post(broker, "/topics/none/records", {"records": [{"value": "x"}]})[0] == 404
    assert post(broker, "/topics/__consumer_offsets/records", {"records": [{"value": "x"}]})[0] in (400, 404)


def test_a_record_of_the_page_is_a_produce_request_like_any_other(broker: Broker) -> None:
    async def produced(real: RealBroker) -> tuple[int, int, int]:
        return (
            real.parts.server.times.by_key()[0].count,
            real.parts.replicas.counters.messages_in,
            real.parts.server.snapshot().accepted,
        )

    post(broker, "/topics/orders/records", {"records": [{"value": "x"}]})
    before = broker.call(produced)
    assert post(broker, "/topics/orders/records", {"records": [{"value": "x"}, {"value": "y"}]})[0] == 200
    now = broker.call(produced)
    assert [a - b for a, b in zip(now, before, strict=True)] == [1, 2, 1]


def test_no_connection_stays_behind(broker: Broker) -> None:
    async def left(real: RealBroker) -> list[str]:
        return [each.client_id for each in real.parts.server.connections()]

    assert post(broker, "/topics/orders/records", {"records": [{"value": "x"}]})[0] == 200
    while "ixion-page" in broker.call(left):
        pass


# Groups.


def test_a_group_is_reset_after_a_preview(broker: Broker) -> None:
    broker.create_topic("read", 2)
    assert post(broker, "/topics/read/records", {"records": [{"value": "x", "partition": 1}] * 5})[0] == 200
    status, found = post(broker, "/groups/readers/offsets/preview", {"to": "-2", "topic": "read"})
    while status == 503:  # the internal topic is being made
        status, found = post(broker, "/groups/readers/offsets/preview", {"to": "-2", "topic": "read"})
    assert status == 200, found
    assert found["changes"] == [
        {"topic": "read", "partition": 0, "committed": None, "target": 0},
        {"topic": "read", "partition": 1, "committed": None, "target": 3},
    ]
    assert get(broker, "/groups/readers")[0] == 404  # a preview changes nothing
    changes = {"changes": found["changes"]}
    assert post(broker, "/groups/readers/offsets", changes) == (200, {"group": "readers", "changed": 2, "faults": []})
    status, again = post(broker, "/groups/readers/offsets", changes)
    assert (status, "look at the changes again" in again["error"]) == (409, True)
    for to, targets in {
        "earliest": [0],
        "latest": [5],
        "4": [4],
        "-1h": [0],
        "2999-01-01T00:00": [5],
        "-2": [],
    }.items():
        found = post(broker, "/groups/readers/offsets/preview", {"to": to})[1]
        assert [each["target"] for each in found["changes"]] == targets, to


def test_a_group_with_members_is_not_reset(broker: Broker) -> None:
    consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "busy", "auto.offset.reset": "earliest"})
    consumer.subscribe(["orders"])
    while not consumer.assignment():
        consumer.poll(0.1)
    consumer.commit(offsets=[TopicPartition("orders", 0, 0)], asynchronous=False)
    found = post(broker, "/groups/busy/offsets/preview", {"to": "7", "topic": "orders", "partitions": [2]})[1]
    assert found["members"] == 1
    change = {"topic": "orders", "partition": 0, "committed": 0, "target": 1}
    status, answer = post(broker, "/groups/busy/offsets", {"changes": [change]})
    assert (status, "has members" in answer["error"]) == (409, True)
    consumer.close()


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/offsets/preview", {"to": "noon", "topic": "orders"}, 400),
        ("/offsets/preview", {"to": "9" * 30, "topic": "orders"}, 400),
        ("/offsets/preview", {"to": "", "topic": "orders"}, 400),
        ("/offsets/preview", {"to": "latest", "topic": "none"}, 404),
        ("/offsets/preview", {"to": "latest", "topic": "orders", "partitions": [3]}, 404),
        ("/offsets", {"changes": []}, 400),
        ("/offsets", {"changes": [{"topic": "\ud800", "partition": 0, "committed": None, "target": 0}]}, 400),
        ("/offsets", {"changes": [{"topic": "orders", "partition": 0, "committed": None, "target": 0}] * 2}, 400),
        ("/offsets", {"changes": [{"topic": "none", "partition": 0, "committed": None, "target": 0}]}, 404),
    ],
)
def test_what_cannot_be_reset_is_said(broker: Broker, path: str, body: Any, status: int) -> None:
    found, answer = post(broker, f"/groups/nobody{path}", body)
    while found == 503:
        found, answer = post(broker, f"/groups/nobody{path}", body)
    assert found == status, answer
    assert answer["error"]


# Delayed records.


def test_a_delayed_record_is_listed_and_cancelled(broker: Broker) -> None:
    def later(value: str, ms: int, *more: tuple[str, str]) -> dict[str, Any]:
        headers = [("x-deliver-after-ms", str(ms)), *more]
        return {"value": value, "headers": [{"name": name, "value": text} for name, text in headers]}

    sent = [
        later("next week", 604_800_000),
        later("soon", 600_000, ("x-schedule-id", "wake")),
        later("hour", 7_200_000),
    ]
    assert post(broker, "/topics/jobs/records", {"records": sent})[0] == 200
    found = get(broker, "/schedules/jobs/0")[1]
    assert [each["value"]["text"] for each in found["records"]] == ["soon", "hour", "next week"]
    assert (found["waiting"], found["complete"], found["records"][0]["id"]) == (3, True, "wake")
    assert post(broker, "/schedules/jobs/cancel", {"partition": 0, "id": "wake"})[0] == 200
    assert post(broker, "/schedules/jobs/cancel", {"partition": 0, "offset": 0})[0] == 200
    left = get(broker, "/schedules/jobs/0")[1]["records"]
    while len(left) > 1:  # cancels are applied in turns of the loop
        left = get(broker, "/schedules/jobs/0")[1]["records"]
    assert [each["value"]["text"] for each in left] == ["hour"]


@pytest.mark.parametrize(
    ("topic", "body", "status"),
    [
        ("orders", {"partition": 0, "offset": 0}, 409),  # it would be delivered like any other record
        ("jobs", {"partition": 0}, 400),
        ("jobs", {"partition": 0, "offset": 0, "id": "a"}, 400),
        ("jobs", {"partition": 0, "id": "*"}, 400),
        ("jobs", {"partition": 0, "id": "@0"}, 400),
        ("jobs", {"partition": 0, "id": "x" * 256}, 400),
        ("jobs", {"partition": 0, "id": "\ud800"}, 400),
        ("jobs", {"partition": 0, "offset": -1}, 400),
        ("jobs", {"partition": 7, "offset": 1}, 404),
        ("none", {"partition": 0, "offset": 1}, 404),
    ],
)
def test_what_cannot_be_cancelled_is_said(broker: Broker, topic: str, body: Any, status: int) -> None:
    assert post(broker, f"/schedules/{topic}/cancel", body)[0] == status


# Where it is allowed.


def test_only_where_it_is_allowed() -> None:
    with Broker({"web.write": False}, metrics=True) as broker:
        broker.create_topic("orders")
        for path in ("/topics/orders/records", "/groups/g/offsets", "/schedules/orders/cancel", "/topics/none/lines"):
            status, found = post(broker, path, {})
            assert (status, "web.write" in found["error"]) == (403, True)
        assert get(broker, "/topics/orders")[1]["partitions"][0]["end"] == 0
        assert get(broker, "/../../topics/orders/produce", Accept="text/html")[0] in (403, 404)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Mode": "navigate"}, 403),
        ({"Sec_Fetch_Site": "same-site"}, 403),
        ({"Host": "evil.example"}, 421),
        ({"Content_Type": "text/plain"}, 415),
        ({"Content_Type": "application/x-www-form-urlencoded"}, 415),
        ({"Content_Type": "multipart/form-data; boundary=application/json"}, 415),
        ({"Sec_Fetch_Site": "same-origin"}, 200),
        ({}, 200),
    ],
    ids=str,
)
def test_no_other_site_can_send_a_record(broker: Broker, headers: dict[str, str], status: int) -> None:
    assert post(broker, "/topics/orders/records", {"records": [{"value": "x"}]}, **headers)[0] == status


def test_values_are_counted_before_they_are_made() -> None:
    assert weighs_too_much(b"[" + b"[]," * (MOST_VALUES + 1) + b"[]]")
    assert weighs_too_much(json.dumps(["a"] * (2 * MOST_VALUES + 1)).encode())
    assert not weighs_too_much(json.dumps({"text": "[{,,,}]" * MOST_VALUES}).encode())
    assert not weighs_too_much(json.dumps({"text": '\\"[,' * MOST_VALUES}).encode())
    assert weighs_too_much(json.dumps({"a\\": ["\\"] * (2 * MOST_VALUES + 1)}).encode())
