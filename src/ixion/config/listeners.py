"""Listeners: `NAME://host:port`, the protocol of each, and the addresses that clients get.

    listeners=PLAINTEXT://127.0.0.1:9092,CONTROL://[::1]:9093
    listener.security.protocol.map=PLAINTEXT:PLAINTEXT,CONTROL:PLAINTEXT
    advertised.listeners=PLAINTEXT://broker1.example.org:9092

Names are converted to upper case. An empty host means every interface, port 0 any free port.
"""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple

from ixion.config.broker import BrokerConfig
from ixion.config.errors import InvalidSettingError
from ixion.config.network_settings import (
    ADVERTISED_LISTENERS,
    CONTROL_PLANE_LISTENER_NAME,
    INTER_BROKER_LISTENER_NAME,
    INTERNAL_TOPIC_WRITE_LISTENERS,
    LISTENER_SECURITY_PROTOCOL_MAP,
    LISTENERS,
    SECURITY_INTER_BROKER_PROTOCOL,
)
from ixion.config.setting import Setting

PROTOCOLS: Final = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
_ENDPOINT: Final = re.compile(r"(.+)://(?:\[([0-9a-zA-Z:.%\-_]*)\]|([0-9a-zA-Z\-%._]*)):([0-9]+)")


class Endpoint(NamedTuple):
    listener: str
    host: str  # empty: every interface
    port: int
    protocol: str = "PLAINTEXT"

    def __str__(self) -> str:
        return f"{self.listener}://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"


class Listeners(NamedTuple):
    bound: tuple[Endpoint, ...]
    advertised: tuple[Endpoint, ...]  # an empty host means the name of this machine
    inter_broker: str  # name of a listener
    control_plane: str | None
    internal_writers: frozenset[str]  # listeners over which clients may produce to internal topics


def parse_endpoint(text: str, protocols: dict[str, str]) -> Endpoint:
    """ValueError with what is allowed."""
    found = _ENDPOINT.fullmatch(text.strip())
    if found is None or int(found[4]) > 65535:
        raise ValueError("NAME://host:port, separated by commas")
    name = found[1].upper()
    if name not in protocols:
        raise ValueError(f"a name in listener.security.protocol.map: {', '.join(sorted(protocols))}")
    return Endpoint(name, found[2] or found[3] or "", int(found[4]), protocols[name])


def listeners(config: BrokerConfig) -> Listeners:
    protocols = _protocols(config)
    bound = _endpoints(LISTENERS, config[LISTENERS], protocols)
    ports = [endpoint.port for endpoint in bound if endpoint.port]
    if len(ports) != len(set(ports)):
        raise _refused(LISTENERS, config[LISTENERS], "a different port for each listener")
    names = [endpoint.listener for endpoint in bound]
    control = _chosen(CONTROL_PLANE_LISTENER_NAME, config[CONTROL_PLANE_LISTENER_NAME], names)
    between = _chosen(INTER_BROKER_LISTENER_NAME, config[INTER_BROKER_LISTENER_NAME], names)
    if between is not None and SECURITY_INTER_BROKER_PROTOCOL.name in config.given:
        allowed = f"left out if {SECURITY_INTER_BROKER_PROTOCOL.name} is set"
        raise _refused(INTER_BROKER_LISTENER_NAME, between, allowed)
    if between is None:
        between = _chosen(SECURITY_INTER_BROKER_PROTOCOL, config[SECURITY_INTER_BROKER_PROTOCOL], names)
    assert between is not None  # the protocol has a default
    if control == between:
        raise _refused(CONTROL_PLANE_LISTENER_NAME, control, "another listener than the inter-broker listener")
    given = config[ADVERTISED_LISTENERS]
    advertised = bound if given is None else _endpoints(ADVERTISED_LISTENERS, given, protocols)
    for endpoint in advertised:
        if endpoint.listener not in names:
            raise _refused(ADVERTISED_LISTENERS, str(endpoint), f"one of the listeners: {', '.join(names)}")
        if endpoint.host == "0.0.0.0":  # noqa: S104 - refused, not bound
            example = f"for example {endpoint.listener}://HOST:{endpoint.port}"
            if given is None:
                together = f"given together with advertised.listeners, {example}, to which clients connect"
                raise _refused(LISTENERS, config[LISTENERS], together)
            raise _refused(ADVERTISED_LISTENERS, str(endpoint), f"an address that clients can connect to, {example}")
    chosen = [_chosen(INTERNAL_TOPIC_WRITE_LISTENERS, name, names) for name in config[INTERNAL_TOPIC_WRITE_LISTENERS]]
    return Listeners(
        bound=bound,
        advertised=advertised,
        inter_broker=between,
        control_plane=control,
        internal_writers=frozenset(name for name in chosen if name is not None),
    )


def _protocols(config: BrokerConfig) -> dict[str, str]:
    text = config[LISTENER_SECURITY_PROTOCOL_MAP]
    protocols: dict[str, str] = {}
    for pair in text.split(","):
        name, _, protocol = (part.strip().upper() for part in pair.rpartition(":"))
        if not name or protocol not in PROTOCOLS or name in protocols:
            allowed = f"NAME:PROTOCOL, each name once, with a protocol of {', '.join(PROTOCOLS)}"
            raise _refused(LISTENER_SECURITY_PROTOCOL_MAP, pair, allowed)
        protocols[name] = protocol
    return protocols


def _endpoints(
    setting: Setting[str] | Setting[str | None], text: str, protocols: dict[str, str]
) -> tuple[Endpoint, ...]:
    try:
        endpoints = tuple(parse_endpoint(part, protocols) for part in text.split(","))
    except ValueError as error:
        raise _refused(setting, text, str(error)) from None
    names = [endpoint.listener for endpoint in endpoints]
    if len(names) != len(set(names)):
        raise _refused(setting, text, "a different name for each listener")
    return endpoints


def _chosen(setting: Setting[Any], name: str | None, names: list[str]) -> str | None:
    if name is None:
        return None
    if name.upper() not in names:
        raise _refused(setting, name, f"one of the listeners: {', '.join(names)}")
    return name.upper()


def _refused(setting: Setting[Any], value: str, allowed: str) -> InvalidSettingError:
    return InvalidSettingError(setting.name, value, allowed)
