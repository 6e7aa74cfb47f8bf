"""The live page without a browser: its data, its HTML, and to whom it is shown."""

from __future__ import annotations

import asyncio
import json
import re
import urllib.error
import urllib.request
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition

from ixion.broker.startup.broker import Broker as RealBroker
from ixion.broker.web.console.endpoints import ENDPOINTS, openapi
from ixion.testing import Broker
from tests.web.hostile import BYTES, TEXTS

VIEWS = (
    *("/", "/wheel", "/purgatories", "/topics", "/topics/orders", "/topics/orders/records", "/groups"),
    *("/transactions", "/producers", "/connections", "/schedules", "/brokers", "/pipelines", "/settings", "/access"),
)


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    """With records, a group whose consumer waits for more, an open transaction and delayed records."""
    with Broker(metrics=True) as running:
        running.create_topic("orders", 3)
        running.create_topic("jobs", 1, delivery_delay_mode="record")
        producer = Producer({"bootstrap.servers": running.bootstrap, "client.id": "shop", "enable.idempotence": True})
        for number in range(30):
            producer.produce("orders", f'{{"order": {number}}}', key=f"c{number}", partition=number % 3)
        producer.produce("jobs", b"later", headers=[("x-deliver-after-ms", "3600000")])
        assert producer.flush(30) == 0
        settings = {"bootstrap.servers": running.bootstrap, "auto.offset.reset": "earliest"}
        consumer = Consumer({**settings, "group.id": "billing", "client.id": "biller", "fetch.wait.max.ms": 30_000})
        consumer.subscribe(["orders"])
        got = 0
        while got < 30:
            message = consumer.poll(1)
            got += message is not None and message.error() is None
        consumer.commit(asynchronous=False)
        # Its transaction stays open for as long as these tests take.
        ledger = Producer(
            {"bootstrap.servers": running.bootstrap, "transactional.id": "ledger", "transaction.timeout.ms": 900_000}
        )
        ledger.init_transactions(30)
        ledger.begin_transaction()
        ledger.produce("orders", b"open", partition=0)
        ledger.flush(30)
        yield running
        ledger.abort_transaction(30)
        consumer.close()


def get(broker: Broker, path: str, kind: str = "application/json", **headers: str) -> tuple[int, str]:
    address = broker.metrics_url.removesuffix("/metrics") + path
    request = urllib.request.Request(address, headers={"Accept": kind, **headers})
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def data(broker: Broker, path: str) -> Any:
    status, body = get(broker, f"/api/v1{path}")
    assert status == 200, body
    return json.loads(body)


def page(broker: Broker, path: str) -> str:
    status, body = get(broker, path, "text/html")
    assert status == 200, body
    return body


# The data.

SCHEMAS = openapi("1")["components"]["schemas"]


def fits(value: Any, schema: dict[str, Any]) -> bool:
    if "$ref" in schema:
        return fits(value, SCHEMAS[schema["$ref"].rpartition("/")[2]])
    if "anyOf" in schema:
        return any(fits(value, each) for each in schema["anyOf"])
    match schema["type"]:
        case "object" if "properties" in schema:
            wanted = schema["properties"]
            return (
                isinstance(value, dict)
                and set(schema["required"]) <= value.keys() <= wanted.keys()
                and all(fits(value[name], wanted[name]) for name in value)
            )
        case "object":
            return all(fits(each, schema["additionalProperties"]) for each in value.values())
        case "array":
            return isinstance(value, list) and all(fits(each, schema["items"]) for each in value)
        case "number":
            return isinstance(value, int | float)
        case "integer":
            return isinstance(value, int) and not isinstance(value, bool)
        case kind:
            return isinstance(value, {"string": str, "boolean": bool, "null": type(None)}[kind])


@pytest.mark.parametrize(
    "endpoint",
    [each for each in ENDPOINTS if isinstance(each.result, type) and each.body is None],
    ids=lambda it: it.path,
)
def test_what_is_returned_is_what_openapi_says(broker: Broker, endpoint: Any) -> None:
    at = {"topic": "orders", "partition": "0", "offset": "3", "group": "billing", "level": "1", "bucket": "0"}
    found = data(broker, endpoint.path.format(**at))
    assert fits(found, {"$ref": f"#/components/schemas/{endpoint.result.__name__}"}), found


def test_openapi_names_every_path(broker: Broker) -> None:
    described = data(broker, "/openapi.json")
    assert described["openapi"].startswith("3.1")
    assert set(described["paths"]) == {f"/api/v1{each.path}" for each in ENDPOINTS}


def test_who_waits_and_for_what(broker: Broker) -> None:
    found = {each["name"]: each for each in data(broker, "/purgatories")["purgatories"]}
    waiting = [each for each in found["Fetch"]["operations"] if each["client_id"] == "biller"]
    assert waiting
    assert re.fullmatch(r"0 of 1 bytes of orders-\d( and 2 more)?", waiting[0]["waits_for"])
    assert 0 < waiting[0]["left_ms"] <= 30_000
    assert any("billing: a heartbeat of" in each["waits_for"] for each in found["Heartbeat"]["operations"])
    assert not data(broker, "/purgatories?q=nobody")["purgatories"][1]["operations"]


def test_every_task_on_the_wheel_is_in_one_bucket(broker: Broker) -> None:
    async def at_one_moment(real: RealBroker) -> tuple[int, int, set[str]]:
        timer = real.parts.timer
        now = timer.snapshot()
        tasks = [
            task
            for level in now.levels
            for number in range(len(level.counts))
            for task in timer.tasks(level.level, number, 1000)
        ]
        return now.size, len(tasks), {task.describe() for task in tasks}

    size, listed, kinds = broker.call(at_one_moment)
    assert size == listed > 3
    assert {"DelayedHeartbeat", "Overdue"} <= kinds
    wheel = data(broker, "/wheel")
    assert sum(sum(each["counts"]) for each in wheel["levels"]) == wheel["size"]


def test_records_by_offset_by_time_by_text_and_the_newest(broker: Broker) -> None:
    newest = data(broker, "/topics/orders/records?limit=5")
    assert len(newest["records"]) == 5
    assert {each["partition"] for each in newest["places"]} == {0, 1, 2}
    one = data(broker, "/topics/orders/records?partition=1&offset=4&limit=3")
    assert [each["offset"] for each in one["records"]] == [4, 5, 6]
    assert one["next_offset"] == 7
    assert one["records"][0]["value"] == {"kind": "json", "text": '{"order": 13}', "size": 13, "cut": False}
    searched = data(broker, "/topics/orders/records?q=%22ORDER%22:%2017")
    assert [each["key"]["text"] for each in searched["records"]] == ["c17"]
    since = one["records"][0]["timestamp"]
    assert data(broker, f"/topics/orders/records?since={since}")["records"]
    assert not data(broker, f"/topics/orders/records?since={since + 10_000_000}")["records"]
    assert len(data(broker, "/topics/orders/records?since=-1h&limit=100")["records"]) == 31  # one is open
    assert not data(broker, "/topics/orders/records?since=2999-01-01T00:00")["records"]
    assert data(broker, "/topics/orders/2/9")["key"]["text"] == "c29"
    status, lines = get(broker, "/api/v1/topics/orders/export?partition=0&offset=0&limit=2")
    assert status == 200
    assert [json.loads(line)["key"] for line in lines.splitlines()] == ["c0", "c3"]


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/topics/none", 404),
        ("/topics/none/records", 404),
        ("/topics/orders/records?partition=3", 400),
        ("/topics/orders/records?limit=100000", 400),
        ("/topics/orders/records?offset=x", 400),
        ("/topics/orders/records?since=noon", 400),
        ("/topics/orders/0/99", 404),
        ("/groups/none", 404),
        ("/wheel/99/0", 404),
        ("/wheel/1/20", 404),
        ("/wheel/-1/x", 404),
        ("/nothing", 404),
        ("/topics?start=" + "9" * 40, 400),
    ],
)
def test_what_is_not_there_is_said_in_json(broker: Broker, path: str, status: int) -> None:
    found, body = get(broker, f"/api/v1{path}")
    assert found == status
    assert path == "/nothing" or json.loads(body)["error"]


def test_a_transaction_a_producer_a_connection_and_a_delayed_record(broker: Broker) -> None:
    (transaction,) = data(broker, "/transactions")["transactions"]
    assert (transaction["transactional_id"], transaction["state"], transaction["stuck"]) == ("ledger", "Ongoing", False)
    assert any(each["transaction_from"] == 10 for each in data(broker, "/producers?q=orders-0")["producers"])
    # A client has several connections, and a new one has not named its library yet.
    billers = data(broker, "/connections?q=biller")["connections"]
    assert any("rdkafka" in each["software"] for each in billers)
    found = data(broker, "/schedules")
    assert found["waiting"] == 1
    assert found["hours"][0]["count"] + found["hours"][1]["count"] == 1  # at any time of the day: see test_due
    (coming,) = data(broker, "/schedules/due")["due"]
    assert (coming["topic"], coming["offset"], coming["value"]["text"]) == ("jobs", 0, "later")
    assert 3_000_000 < coming["in_ms"] <= 3_600_000
    assert data(broker, "/schedules/due?q=nothing")["due"] == []
    group = data(broker, "/groups/billing")
    assert group["members"][0]["client_id"] == "biller"
    assert sorted(group["members"][0]["assigned"]) == ["orders-0", "orders-1", "orders-2"]
    assert sum(each["committed"] for each in group["offsets"]) == 30


# Streams.


async def events_of(broker: Broker, path: str, count: int, *headers: str) -> list[dict[str, str]]:
    """The first events of a stream."""
    host, _, port = broker.metrics_url.split("/")[2].rpartition(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    lines = [f"GET /api/v1{path} HTTP/1.1", "Host: localhost", "Accept: text/event-stream", *headers, "", ""]
    writer.write("\r\n".join(lines).encode())
    found: list[dict[str, str]] = []
    event: dict[str, str] = {}
    async with asyncio.timeout(60):
        while len(found) < count:
            line = (await reader.readline()).decode().rstrip("\r\n")
            name, colon, value = line.partition(": ")
            if colon and name in ("id", "event", "data"):
                event[name] = value
            elif not line and "data" in event:
                found.append(event)
                event = {}
    writer.close()
    return found


def test_the_wheel_is_streamed(broker: Broker) -> None:
    first, second = asyncio.run(events_of(broker, "/wheel/events", 2))
    assert json.loads(second["data"])["now_ms"] > json.loads(first["data"])["now_ms"]


def test_a_tail_goes_on_where_it_stopped(broker: Broker) -> None:
    broker.create_topic("news", 2)
    producer = Producer({"bootstrap.servers": broker.bootstrap, "linger.ms": 0})

    def say(text: str) -> None:
        producer.produce("news", text, partition=1)
        assert producer.flush(30) == 0

    async def run() -> None:
        following = asyncio.create_task(events_of(broker, "/topics/news/tail", 1))
        while not await asyncio.to_thread(waits_for, broker, "news-1"):
            pass
        await asyncio.to_thread(say, "one")
        (event,) = await following
        assert [each["value"]["text"] for each in json.loads(event["data"])["records"]] == ["one"]
        assert event["id"] == "0:0,1:1"
        await asyncio.to_thread(say, "two")  # while no page is open
        (event,) = await events_of(broker, "/topics/news/tail", 1, f"Last-Event-ID: {event['id']}")
        assert [each["value"]["text"] for each in json.loads(event["data"])["records"]] == ["two"]
        while await asyncio.to_thread(waits_for, broker, "news"):
            pass  # the fetches of a page that is gone are taken back

    asyncio.run(run())


def waits_for(broker: Broker, key: str) -> bool:
    found = data(broker, f"/purgatories?q={key}")["purgatories"]
    return any(each["operations"] for each in found if each["name"] == "Fetch")


def test_what_happened_is_told_in_words_and_resumed(broker: Broker) -> None:
    async def look(real: RealBroker) -> None:
        (action,) = (action for name, action in real.parts.undo if name == "figures of the pages")
        await action.__self__.history().look()  # type: ignore[attr-defined]

    broker.call(look)
    broker.create_topic("fresh")
    broker.call(look)
    found = {each["text"]: each for each in data(broker, "/overview")["events"]}
    assert found["topic fresh was created"]["link"] == "/topics/fresh"
    last = found["topic fresh was created"]["id"]
    (event,) = asyncio.run(events_of(broker, "/events", 1, f"Last-Event-ID: {last - 1}"))
    assert event["id"] == str(last)
    for earlier in (500, last + 10**6):  # of a broker that has started again since, or whose clock was set back
        (event,) = asyncio.run(events_of(broker, "/events", 1, f"Last-Event-ID: {earlier}"))
        assert int(event["id"]) <= last


# The pages.


@pytest.mark.parametrize("path", VIEWS)
def test_every_view_is_html_without_scripts_of_its_own(broker: Broker, path: str) -> None:
    body = page(broker, path)
    assert "<h1>" in body
    assert not re.search(r"<script>|<style| style=| on\w+=", body)
    assert len(body) < 200_000


def test_files_have_their_hash_and_are_kept(broker: Broker) -> None:
    body = page(broker, "/wheel")
    paths = re.findall(r'(?:href|src)="(/static/[^"]+)"', body)
    assert len(paths) >= 4
    for path in paths:
        address = broker.metrics_url.removesuffix("/metrics") + path
        with urllib.request.urlopen(address, timeout=30) as answer:
            assert "immutable" in answer.headers["Cache-Control"]
    assert get(broker, "/static/..%2fapp.py")[0] == 404
    assert get(broker, "/static/page.css")[0] == 404


class Reader(HTMLParser):
    """Elements and attributes that only harm could bring in."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        source = given.get("src") or given.get("href") or ""
        if tag == "script" and not source.startswith("/static/"):
            self.found.append(f"script {source}")
        if any(name.startswith("on") for name in given) or tag in ("img", "base", "iframe", "object"):
            self.found.append(f"{tag} {given}")
        if source and not source.startswith(("/", "#")):
            self.found.append(f"{tag} {source}")


def test_names_keys_values_and_headers_stay_text(broker: Broker) -> None:
    broker.create_topic("hostile")
    for text in TEXTS:
        consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": text, "client.id": text[:200]})
        consumer.commit(offsets=[TopicPartition("orders", 0, 1)], asynchronous=False)
        consumer.close()
    producer = Producer({"bootstrap.servers": broker.bootstrap, "transactional.id": TEXTS[0]})
    producer.init_transactions(30)
    producer.begin_transaction()
    for each in (*(text.encode() for text in TEXTS), *BYTES):
        producer.produce("hostile", each, key=each, headers=[(each.decode(errors="replace"), each)])
    producer.commit_transaction(30)
    paths = ["/topics/hostile/records?limit=100", "/groups", "/connections", "/transactions", "/", "/topics/orders"]
    paths += [f"/groups/{quote(text, safe='')}" for text in TEXTS]
    for path in (*paths, *(f"/topics?q={quote(text)}" for text in TEXTS)):
        reader = Reader()
        reader.feed(page(broker, path))
        assert reader.found == [], path
    shown = data(broker, "/topics/hostile/records?limit=100&partition=0&offset=0")["records"]
    assert [each["value"]["text"] for each in shown[: len(TEXTS)]] == list(TEXTS)
    assert {each["value"]["kind"] for each in shown[len(TEXTS) :]} <= {"bytes", "text"}


def test_programs_get_what_they_got_before(broker: Broker) -> None:
    assert "timer" in json.loads(get(broker, "/wheel")[1])
    assert "/healthz" in get(broker, "/", "*/*")[1]


# To whom it is shown.


@pytest.mark.parametrize(
    ("users", "status", "topics"),
    [("User:ANONYMOUS", 200, ["orders"]), ("User:root", 403, [])],
    ids=["all rights", "no rights"],
)
def test_where_nobody_logs_in_the_rights_are_those_of_an_anonymous_client(
    users: str, status: int, topics: list[str], tmp_path: Path
) -> None:
    with Broker(data=tmp_path) as before:
        before.create_topic("orders")
    settings = {"authorizer.class.name": "kafka.security.authorizer.AclAuthorizer", "super.users": users}
    with Broker(settings, metrics=True, data=tmp_path) as broker:
        assert [each["name"] for each in data(broker, "/topics")["topics"]] == topics
        assert get(broker, "/connections", "text/html")[0] == status
