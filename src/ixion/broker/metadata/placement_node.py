"""`/ixion_placement`: how groups and transactional ids are spread over the partitions of their topics.

The node is ours; Apache Kafka ignores it. It is missing until a broker of this version or a later one has started.
"""

from __future__ import annotations

from enum import Enum

from ixion.broker.metadata.content import from_json, to_json


class Placement(Enum):
    KAFKA = "kafka"
    MASKED = "masked"  # as ixion 0.1 did it, in a cluster that has groups from then
    MOVING = "moving"  # a broker moves them over, or was killed doing so; until it is done no broker may serve


def encode_placement(placement: Placement) -> bytes:
    return to_json({"version": 1, "rule": placement.value})


def decode_placement(data: bytes) -> Placement:
    return from_json("the placement of groups", data, lambda members: Placement(members["rule"]))
