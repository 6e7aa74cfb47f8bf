"""`/brokers/ids/1`: the registration of a broker, in Kafka's version 5.

`ixion_kept_since` and `ixion_in_doubt` are ours; Apache Kafka ignores them.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from ixion.broker.metadata.content import from_json, to_json
from ixion.config.listeners import PROTOCOLS, Endpoint, parse_endpoint


class Registration(NamedTuple):
    endpoints: tuple[Endpoint, ...]  # as advertised
    timestamp_ms: int
    rack: str | None = None
    jmx_port: int = -1
    features: Mapping[str, tuple[int, int]] = {}  # name -> lowest and highest version
    # Nothing that the logs got under this broker epoch or a later one is lost; None: not known (see `log.kept`).
    kept_since: int | None = None
    in_doubt: bool = False  # the logs may have lost records. Apache Kafka and older versions say neither.


def encode_registration(registration: Registration) -> bytes:
    # Old clients read only host and port, and support only plaintext.
    plain = next((endpoint for endpoint in registration.endpoints if endpoint.protocol == "PLAINTEXT"), None)
    members: dict[str, Any] = {
        "features": {
            name: {"min_version": low, "max_version": high} for name, (low, high) in registration.features.items()
        },
        "listener_security_protocol_map": {endpoint.listener: endpoint.protocol for endpoint in registration.endpoints},
        "endpoints": [str(endpoint) for endpoint in registration.endpoints],
        "jmx_port": registration.jmx_port,
        "port": plain.port if plain else -1,
        "host": plain.host if plain else None,
        "version": 5,
        "timestamp": str(registration.timestamp_ms),
    }
    if registration.rack is not None:
        members["rack"] = registration.rack
    if registration.kept_since is not None:
        members["ixion_kept_since"] = registration.kept_since
    if registration.in_doubt:
        members["ixion_in_doubt"] = True
    return to_json(members)


def decode_registration(broker_id: int, data: bytes) -> Registration:
    def read(members: dict[str, Any]) -> Registration:
        if members["version"] < 4:
            raise ValueError(f"version {members['version']} is from a broker before 0.10")
        protocols = members["listener_security_protocol_map"]
        strange = set(protocols.values()) - set(PROTOCOLS)
        if strange:
            raise ValueError(f"unknown security protocol {sorted(map(str, strange))[0]}")
        return Registration(
            endpoints=tuple(parse_endpoint(text, protocols) for text in members["endpoints"]),
            timestamp_ms=int(members["timestamp"]),
            rack=members.get("rack"),
            jmx_port=members["jmx_port"],
            features={
                name: (levels["min_version"], levels["max_version"])
                for name, levels in members.get("features", {}).items()
            },
            kept_since=None if members.get("ixion_kept_since") is None else int(members["ixion_kept_since"]),
            in_doubt=members.get("ixion_in_doubt") is True,
        )

    return from_json(f"the registration of broker {broker_id}", data, read)
