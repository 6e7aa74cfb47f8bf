"""Configs, and the sequential nodes by which brokers tell each other that something changed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

from ixion.metadata.content import from_json, to_json

LOG_DIR_FAILED: Final = 1

Partition = tuple[str, int]


def encode_config(config: Mapping[str, str]) -> bytes:
    return to_json({"version": 1, "config": dict(config)})


def decode_config(entity: str, data: bytes) -> dict[str, str]:
    """`entity` as in a change: topics/t. An empty node holds no settings."""
    if not data:
        return {}

    def read(members: dict[str, Any]) -> dict[str, str]:
        return {str(name): str(value) for name, value in members["config"].items()}

    return from_json(f"the config of {entity}", data, read)


def encode_config_change(entity: str) -> bytes:
    """`topics/t`, `brokers/<default>`, `users/u/clients/c`: the path below /config of what changed."""
    return to_json({"version": 2, "entity_path": entity})


def decode_config_change(data: bytes) -> str:
    def read(members: dict[str, Any]) -> str:
        if members["version"] == 1:  # of brokers before 0.10.1
            return f"{members['entity_type']}/{members['entity_name']}"
        return str(members["entity_path"])

    return from_json("the config change", data, read)


def encode_isr_change(partitions: Iterable[Partition]) -> bytes:
    changed = [{"topic": topic, "partition": number} for topic, number in partitions]
    return to_json({"version": 1, "partitions": changed})


def decode_isr_change(data: bytes) -> list[Partition]:
    def read(members: dict[str, Any]) -> list[Partition]:
        return [(str(entry["topic"]), int(entry["partition"])) for entry in members["partitions"]]

    return from_json("the ISR change", data, read)


def encode_log_dir_event(broker_id: int) -> bytes:
    return to_json({"version": 1, "broker": broker_id, "event": LOG_DIR_FAILED})


def decode_log_dir_event(data: bytes) -> int:
    """The id of the broker that lost a log directory."""
    return from_json("the log directory event", data, lambda members: int(members["broker"]))
