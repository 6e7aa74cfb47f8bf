"""Listeners: what is read, what clients get to see, what is refused."""

from __future__ import annotations

import pytest

from ixion.config.broker import BrokerConfig
from ixion.config.errors import InvalidSettingError
from ixion.config.listeners import Endpoint, Listeners, listeners

MAP = "client:SASL_SSL,BETWEEN:SSL,CONTROL:PLAINTEXT"


def read(**given: str) -> Listeners:
    return listeners(BrokerConfig({name.replace("_", "."): value for name, value in given.items()}))


def test_the_default_is_the_loopback() -> None:
    found = read()
    assert found.bound == found.advertised == (Endpoint("PLAINTEXT", "127.0.0.1", 9092),)
    assert (found.inter_broker, found.control_plane) == ("PLAINTEXT", None)


def test_several_with_names_of_their_own() -> None:
    found = read(
        listeners="client://:9092, BETWEEN://[::1]:9093,CONTROL://h-1.example:0",
        advertised_listeners="CLIENT://public.example:19092,BETWEEN://[fe80::1%eth0]:9093",
        listener_security_protocol_map=MAP,
        inter_broker_listener_name="between",
        control_plane_listener_name="CONTROL",
    )
    assert found.bound == (
        Endpoint("CLIENT", "", 9092, "SASL_SSL"),
        Endpoint("BETWEEN", "::1", 9093, "SSL"),
        Endpoint("CONTROL", "h-1.example", 0, "PLAINTEXT"),
    )
    assert [str(endpoint) for endpoint in found.advertised] == [
        "CLIENT://public.example:19092",
        "BETWEEN://[fe80::1%eth0]:9093",
    ]
    assert (found.inter_broker, found.control_plane) == ("BETWEEN", "CONTROL")


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"listeners": "PLAINTEXT:9092"}, "listeners is 'PLAINTEXT:9092', but must be NAME://host:port"),
        ({"listeners": ""}, "must be NAME://host:port"),
        ({"listeners": "PLAINTEXT://h:70000"}, "must be NAME://host:port"),
        ({"listeners": "PLAINTEXT://::1:9092"}, "must be NAME://host:port"),
        ({"listeners": "MINE://h:1"}, "a name in listener.security.protocol.map: PLAINTEXT, SASL_"),
        ({"listeners": "PLAINTEXT://h:1,plaintext://h:2"}, "a different name for each listener"),
        ({"listeners": "PLAINTEXT://h:1,SSL://h:1"}, "a different port for each listener"),
        (
            {"listeners": "SSL://h:1"},
            "security.inter.broker.protocol is 'PLAINTEXT', but must be one of the listeners: SSL",
        ),
        ({"listener.security.protocol.map": "A:TLS"}, "map is 'A:TLS', but must be NAME:PROTOCOL"),
        ({"listener.security.protocol.map": "A:SSL,a:SSL"}, "each name once"),
        ({"inter.broker.listener.name": "OTHER"}, "inter.broker.listener.name is 'OTHER', but must be one of"),
        (
            {"inter.broker.listener.name": "PLAINTEXT", "security.inter.broker.protocol": "PLAINTEXT"},
            "inter.broker.listener.name is .* must be left out if security.inter.broker.protocol is set",
        ),
        ({"control.plane.listener.name": "OTHER"}, "control.plane.listener.name is 'OTHER', but must be one of"),
        ({"control.plane.listener.name": "PLAINTEXT"}, "another listener than the inter-broker listener"),
        (
            {"advertised.listeners": "SSL://h:1"},
            "advertised.listeners is 'SSL://h:1', but must be one of the listeners",
        ),
        ({"advertised.listeners": "PLAINTEXT://0.0.0.0:1"}, "an address that clients can connect to"),
        (
            {"listeners": "PLAINTEXT://0.0.0.0:1"},
            "^listeners .* together with advertised.listeners, for example PLAINTEXT://HOST:1, ",
        ),
    ],
)
def test_refused(given: dict[str, str], message: str) -> None:
    with pytest.raises(InvalidSettingError, match=message):
        listeners(BrokerConfig(given))
