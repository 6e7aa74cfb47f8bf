"""Change notifications: sequential nodes that inform other brokers of a change."""

from __future__ import annotations

from typing import Any, Final

from ixion.broker.metadata.content import from_json, to_json

LOG_DIR_FAILED: Final = 1


def encode_config_change(entity: str) -> bytes:
    """`topics/t`, `brokers/<default>`, `users/u/clients/c`: the path of the changed entity below /config."""
    return to_json({"version": 2, "entity_path": entity})


def decode_config_change(data: bytes) -> str:
    def read(members: dict[str, Any]) -> str:
        if members["version"] == 1:  # of brokers before 0.10.1
            return f"{members['entity_type']}/{members['entity_name']}"
        return str(members["entity_path"])

    return from_json("the config change", data, read)


def encode_log_dir_event(broker_id: int) -> bytes:
    return to_json({"version": 1, "broker": broker_id, "event": LOG_DIR_FAILED})


def decode_log_dir_event(data: bytes) -> int:
    """The id of the broker that lost a log directory."""
    return from_json("the log directory event", data, lambda members: int(members["broker"]))
