"""Nodes of the whole cluster: its id, the controller and its epoch, the producer id block, the features."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from ixion.broker.metadata.content import CorruptNodeError, from_json, to_json


class ProducerIdBlock(NamedTuple):
    """Producer ids that one broker may assign: first to last, both inclusive."""

    broker_id: int
    first: int
    last: int


def encode_cluster_id(cluster_id: str) -> bytes:
    return to_json({"version": "1", "id": cluster_id})


def decode_cluster_id(data: bytes) -> str:
    return from_json("the cluster id", data, lambda members: str(members["id"]))


def encode_controller(broker_id: int, timestamp_ms: int) -> bytes:
    # The last member means: not a KRaft controller during a migration.
    members = {"version": 2, "brokerid": broker_id, "timestamp": str(timestamp_ms), "kraftControllerEpoch": -1}
    return to_json(members)


def decode_controller(data: bytes) -> int:
    """The id of the broker that is the controller."""
    return from_json("the controller", data, lambda members: int(members["brokerid"]))


def encode_controller_epoch(epoch: int) -> bytes:
    return b"%d" % epoch


def decode_controller_epoch(data: bytes) -> int:
    try:
        return int(data)
    except ValueError:
        raise CorruptNodeError(f"the controller epoch is {data[:200]!r}, not a number") from None


def encode_producer_ids(block: ProducerIdBlock) -> bytes:
    return to_json(
        {"version": 1, "broker": block.broker_id, "block_start": str(block.first), "block_end": str(block.last)}
    )


def decode_producer_ids(data: bytes) -> ProducerIdBlock:
    def read(members: dict[str, Any]) -> ProducerIdBlock:
        first, last = int(members["block_start"]), int(members["block_end"])
        return ProducerIdBlock(broker_id=members["broker"], first=first, last=last)

    return from_json("the producer id block", data, read)


# A cluster of ixion alone begins with the consumer protocol (KIP-848), share groups (KIP-932) and streams groups
# (KIP-1071). Apache Kafka 3.9 could not join it.
OURS_ALONE: Final[dict[str, int]] = {"group.version": 1, "share.version": 1, "streams.version": 1}


def encode_features(levels: dict[str, int]) -> bytes:
    """The finalized features and their levels. Kafka writes both ends of what was a range once."""
    features = {name: {"max_version_level": level, "min_version_level": level} for name, level in levels.items()}
    return to_json({"features": features, "version": 1, "status": 1})


def decode_features(data: bytes) -> dict[str, int]:
    def read(members: dict[str, Any]) -> dict[str, int]:
        if members["status"] != 1:  # disabled: ignore the features
            return {}
        # Version 2 of the node, written by Kafka 3.3 and later, has only the level.
        return {
            name: levels if isinstance(levels, int) else levels["max_version_level"]
            for name, levels in members["features"].items()
        }

    return from_json("the features", data, read)
