"""By which listeners a controller is heard."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import pytest

from ixion.broker.apis.between_brokers import MOST_ADDRESSES, BetweenBrokers
from ixion.broker.apis.call import Call
from ixion.broker.apis.services import Services
from ixion.config.dynamic import DynamicConfig
from ixion.config.sources import load

LISTENERS = [
    "listeners=CLIENTS://127.0.0.1:9092,BROKERS://127.0.0.1:9093,CONTROL://127.0.0.1:9094",
    "listener.security.protocol.map=CLIENTS:PLAINTEXT,BROKERS:PLAINTEXT,CONTROL:PLAINTEXT",
    "inter.broker.listener.name=BROKERS",
    "control.plane.listener.name=CONTROL",
]


def admitted(*settings: str) -> set[str]:
    config = DynamicConfig(load(assignments=[*LISTENERS, *settings]).given)
    brokers = BetweenBrokers(cast(Services, SimpleNamespace(config=config)))
    calls = {
        name: cast(Call, SimpleNamespace(listener=name, address="10.0.0.9"))
        for name in ("CLIENTS", "BROKERS", "CONTROL")
    }
    return {name for name, call in calls.items() if brokers.admits(call, "StopReplica")}


def test_requests_of_a_controller_come_in_on_the_inter_broker_listener(caplog: pytest.LogCaptureFixture) -> None:
    assert admitted("zookeeper.connect=127.0.0.1:2181") == {"BROKERS", "CONTROL"}
    assert "StopReplica from 10.0.0.9 refused: listener CLIENTS is not for a controller" in caplog.text


def test_a_broker_alone_refuses_requests_of_a_controller_on_every_listener() -> None:
    assert admitted() == set()


def test_a_stranger_that_repeats_itself_does_not_fill_the_log(caplog: pytest.LogCaptureFixture) -> None:
    brokers = BetweenBrokers(cast(Services, SimpleNamespace(config=DynamicConfig(load(assignments=LISTENERS).given))))
    for number in range(3_000):
        call = SimpleNamespace(listener="CLIENTS", address=f"10.0.{number % 1_500}.9")
        assert not brokers.admits(cast(Call, call), "StopReplica")
    assert len(caplog.records) == MOST_ADDRESSES
