"""`/config/topics/T` and similar: the settings of a topic, a broker, a group, a client."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ixion.broker.metadata import paths
from ixion.broker.metadata.content import from_json, to_json
from ixion.broker.metadata.errors import NoNodeError
from ixion.broker.metadata.session import MetadataSession


def encode_config(config: Mapping[str, str]) -> bytes:
    return to_json({"version": 1, "config": dict(config)})


def decode_config(entity: str, data: bytes) -> dict[str, str]:
    """`entity` as in a change notification: topics/t. An empty node has no settings."""
    if not data:
        return {}

    def read(members: dict[str, Any]) -> dict[str, str]:
        return {str(name): str(value) for name, value in members["config"].items()}

    return from_json(f"the config of {entity}", data, read)


async def read_config(session: MetadataSession, kind: str, entity: str) -> dict[str, str]:
    """The settings of an entity; none if it has no node."""
    try:
        return decode_config(f"{kind}/{entity}", (await session.get(paths.config(kind, entity))).data)
    except NoNodeError:
        return {}
