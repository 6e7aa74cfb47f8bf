"""Looks at records: filters, keys, files, what a look costs, and the command that shows the same."""

from __future__ import annotations

import asyncio
import csv
import io
import json
import shlex
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlencode

import pytest
from confluent_kafka import Producer

from ixion.broker.startup.broker import Broker as RealBroker
from ixion.broker.web.console.api import cost
from ixion.broker.web.console.api.cost import Cost, GoneError
from ixion.broker.web.console.api.export import cell
from ixion.broker.web.console.api.record_rows import text_of
from ixion.broker.web.console.api.records import Records, has_text
from ixion.broker.web.console.views.records import command, indented
from ixion.cli.consume.commands import filter_of
from ixion.testing import Broker
from ixion.timer.clock import ManualClock

LONG = "x" * 5_000


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(metrics=True) as running:
        running.create_topic("orders", 3)
        producer = Producer({"bootstrap.servers": running.bootstrap})
        for number in range(300):
            value = {"order": number, "total": number * 1.5, "state": "failed" if number % 50 == 7 else "paid"}
            headers: list[tuple[str, str | bytes | None]] = [("trace", f"t{number}".encode())]
            producer.produce("orders", json.dumps(value), key=f"c{number % 10}", partition=number % 3, headers=headers)
        producer.produce("orders", LONG, key="=1+1", partition=0, headers=[("h", b"\xff"), ("long", LONG.encode())])
        producer.produce("orders", None, key=b"\xff\x00", partition=0)
        assert producer.flush(30) == 0
        yield running


def get(broker: Broker, path: str, **query: Any) -> tuple[int, str]:
    address = f"{broker.metrics_url.removesuffix('/metrics')}{path}?{urlencode(query)}"
    try:
        with urllib.request.urlopen(urllib.request.Request(address, headers={"Accept": "text/html"})) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


def look(broker: Broker, **query: Any) -> Any:
    status, body = get(broker, "/api/v1/topics/orders/records", **query)
    assert status == 200, body
    return json.loads(body)


def orders(found: Any) -> list[int]:
    return sorted(json.loads(each["value"]["text"])["order"] for each in found["records"])


def test_a_filter_a_key_and_a_text(broker: Broker) -> None:
    found = look(broker, filter='value.state == "failed" and value.total > 100', limit=100)
    assert orders(found) == [107, 157, 207, 257]
    assert (found["searched"], found["complete"], found["too_long"]) == (302, True, 0)
    assert orders(look(broker, filter='value.state == "failed"', key="c7", q="T107")) == [107]
    assert len(look(broker, key="c3", limit=100)["records"]) == 30
    assert orders(look(broker, filter="headers.trace == 't9' and partition == 0")) == [9]
    assert orders(look(broker, filter="value.order < 6", partition=0, offset=0)) == [0, 3]
    assert look(broker, filter="value.order < 0")["records"] == []


def test_older_and_later_records_of_a_partition(broker: Broker) -> None:
    query: dict[str, Any] = {"partition": 1, "filter": "value.order >= 0", "limit": 40}
    seen: list[int] = []
    before: int | None = None
    while before != 0:
        found = look(broker, **query, **({} if before is None else {"before": before}))
        seen += orders(found)
        before = found["searched_from"]
    assert sorted(seen) == list(range(1, 300, 3))
    assert len(seen) == len(set(seen))


def test_what_is_no_filter_is_said(broker: Broker) -> None:
    status, body = get(broker, "/api/v1/topics/orders/records", filter="value.x == ")
    assert status == 400
    assert "the filter ends too early" in json.loads(body)["error"]
    status, body = get(broker, "/topics/orders/records", filter="<script>")
    assert status == 400
    assert "&lt;" in body
    assert "<script>" not in body
    assert get(broker, "/api/v1/topics/orders/export", format="xml")[0] == 400


def test_files_have_whole_records(broker: Broker) -> None:
    status, lines = get(broker, "/api/v1/topics/orders/export", limit=1000)
    assert status == 200
    rows = [json.loads(line) for line in lines.splitlines()]
    assert len(rows) == 302
    (long,) = [each for each in rows if each["value"] == LONG]
    assert long["headers"] == [["h", {"base64": "/w=="}], ["long", LONG]]
    status, text = get(broker, "/api/v1/topics/orders/export", format="csv", partition=0, limit=1000)
    table = list(csv.DictReader(io.StringIO(text)))
    assert len(table) == 102
    assert {"'=1+1", "/wA="} <= {each["key"] for each in table}
    assert {json.loads(each["headers"] or "[[0]]")[0][0] for each in table} == {"trace", "h", 0}
    assert [cell(each) for each in ("-1.5", "-1.5-2", "@a", "a=b", "")] == ["-1.5", "'-1.5-2", "'@a", "a=b", ""]


def test_a_record_alone_is_whole_and_indented(broker: Broker) -> None:
    status, body = get(broker, "/topics/orders/0/100")
    assert status == 200
    assert LONG in body
    assert get(broker, "/topics/orders/0/100000")[0] == 404
    assert "{\n  &quot;order&quot;: 0,\n" in get(broker, "/topics/orders/0/0")[1]
    written = '{"a":[1.10,{"b,":"]\\""},[]],"a":{},"c":-1e400}'
    assert (
        indented(written)
        == '{\n  "a": [\n    1.10,\n    {\n      "b,": "]\\""\n    },\n    []\n  ],\n  "a": {},\n  "c": -1e400\n}'
    )
    assert "".join(indented(written).split()) == written
    assert len(indented("[" * 1000 + "]" * 1000)) < 130_000


def test_the_command_shows_the_same(broker: Broker) -> None:
    body = get(broker, "/topics/orders/records", filter="value.total > 10", q="Fa'il", key="c7", partition=1)[1]
    assert "ixion consume orders -e --partition 1 --key c7 --filter" in body
    found = Records(
        topic="orders", partition=1, places=[], query="fa'il. <b>", key="c 7", filter="value.a or key", records=[],
        searched=0, too_long=0, complete=True, next_offset=None, searched_from=None, silent=[],
    )  # fmt: skip
    words = shlex.split(command(found, {"since": "2026-05-01T12:00"}))
    assert words[:8] == ["ixion", "consume", "orders", "-e", "--partition", "1", "-o", "@2026-05-01T12:00Z"]
    assert words[8:11] == ["--key", "c 7", "--filter"]
    fits = filter_of(words[11])

    class Each:
        offset = timestamp = 0
        key: bytes | None = b"c 7"
        headers: list[tuple[str, bytes | None]] = [("a", b"")]  # noqa: RUF012 (not changed)

        def __init__(self, value: bytes) -> None:
            self.value: bytes | None = value

    for value, wanted in ((b"it Fa'il. <B> x", True), (b"fa'ilx <b>", False)):
        assert fits.fits(Each(value), 0) is wanted
        assert has_text(Each(value), found["query"]) is wanted  # type: ignore[arg-type]
    assert command(found | {"query": "", "key": "", "filter": ""}, {}).endswith("-o -1")


def test_a_look_ends_with_its_time_and_with_its_browser() -> None:
    clock = ManualClock()
    spent = Cost(clock, look_ms=100)
    assert all(spent.step() for _ in range(1000))
    clock.advance(100)
    assert not all(spent.step() for _ in range(cost.EVERY))
    assert spent.is_over()
    gone = Cost(clock)
    gone.gone = True
    with pytest.raises(GoneError):
        all(gone.step() for _ in range(cost.EVERY))
    reads = Cost(clock)
    reads.reads = cost.MOST_READS
    assert reads.is_over(3)
    assert not reads.is_over(cost.MOST_READS + 1)
    assert not Cost(clock).shows(cost.SHOWN_BYTES)


def test_a_browser_that_goes_ends_the_thread(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    """The connection is closed while the thread is in its first batch: it meets the mark of the loop."""
    looks: list[Cost] = []
    ended: list[bool] = []

    class Endless(Cost):
        def __init__(self) -> None:
            super().__init__()
            looks.append(self)

        def step(self) -> bool:
            while not self.gone:
                pass
            ended.append(True)
            raise GoneError(503, "gone")

    monkeypatch.setattr("ixion.broker.web.console.api.records.Cost", Endless)

    async def run() -> None:
        host, _, port = broker.metrics_url.split("/")[2].rpartition(":")
        _, writer = await asyncio.open_connection(host, int(port))
        writer.write(b"GET /api/v1/topics/orders/records?q=x HTTP/1.1\r\nHost: localhost\r\n\r\n")
        while not looks:
            await asyncio.sleep(0)
        writer.transport.abort()

    asyncio.run(run())

    async def wait(real: RealBroker) -> None:
        while not ended:
            await asyncio.sleep(0)

    broker.call(wait)


def test_long_json_is_not_parsed_to_be_shown() -> None:
    """A megabyte of it held up the event loop for 35 ms: the interpreter is not given away meanwhile."""
    most = cost.FILTER_LIMITS.json_bytes
    assert text_of(b"[" * most, 1 << 30)["kind"] == "text"
    assert text_of(b"[" * (most + 1), 1 << 30)["kind"] == "json"  # by its look
