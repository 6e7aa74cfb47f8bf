"""A tuple that keeps its encoding, for a part of a message that goes to many receivers.

    states = Kept(states)
    for broker in brokers: send(UpdateMetadataRequest(broker_epoch=broker.epoch, topic_states=states, ...))

The first message encodes it, and the others send the same bytes. The elements must not change. Not compiled: a compiled
class cannot extend tuple.
"""

from __future__ import annotations

from typing import TypeVar

T = TypeVar("T")


class Kept(tuple[T, ...]):
    codec: object = None  # the wire type that encoded it; each version has its own
    data: bytes = b""
