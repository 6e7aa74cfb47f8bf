"""`ixion wheel --broker`, and delivery.delay.topics, on a running broker."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Iterator

import pytest
from confluent_kafka import Producer

from ixion.cli.app import execute
from ixion.testing import Broker


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker({"delivery.delay.topics": r"later\..*:record"}, metrics=True) as made:
        made.create_topic("later.mails")
        producer = Producer({"bootstrap.servers": made.bootstrap})
        for _ in range(3):
            producer.produce("later.mails", b"x", headers={"x-deliver-after-ms": "3600000"})
        assert producer.flush(60) == 0
        yield made


def address(broker: Broker) -> str:
    assert broker.metrics_url is not None
    return broker.metrics_url.removeprefix("http://").removesuffix("/metrics")


def test_the_wheel_of_a_broker_is_shown_with_what_waits(broker: Broker, capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["wheel", "--broker", address(broker), "--seconds", "0.1"]) == 0
    shown = capsys.readouterr().out
    assert "waiting" in shown
    assert "later.mails-0: 3 wait" in shown


def test_the_page_has_the_levels_of_the_wheel(broker: Broker) -> None:
    with urllib.request.urlopen(f"http://{address(broker)}/wheel", timeout=60) as answer:
        page = json.load(answer)
    assert page["timer"]["levels"]
    assert [(each["topic"], each["waiting"]) for each in page["schedules"]] == [("later.mails", 3)]


@pytest.mark.parametrize("where", ["127.0.0.1:1", "127.0.0.1:many"])
def test_an_address_that_does_not_answer_is_one_line(where: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["wheel", "--broker", where, "--seconds", "0.1"]) != 0
    said = capsys.readouterr().err
    assert "127.0.0.1" in said
    assert "Traceback" not in said
