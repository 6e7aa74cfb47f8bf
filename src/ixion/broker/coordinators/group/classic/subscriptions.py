"""The subscriptions that consumers of a classic group send to their leader; the broker reads the topics only.

Every version of a subscription begins like version 0, so newer ones are read too: two bytes of version, the topics.
"""

# This module is compiled: see setup.py.

from __future__ import annotations

from collections.abc import Iterable

from ixion.language.protocol.flaws import DecodeError


def subscribed_topics(metadata: Iterable[bytes]) -> frozenset[str] | None:
    """The topics of all subscriptions together; None if one cannot be read."""
    topics: set[str] = set()
    try:
        for each in metadata:
            topics.update(topics_of(each))
    except DecodeError:
        return None
    return frozenset(topics)


def topics_of(metadata: bytes) -> list[str]:
    position = 2
    count = _number(metadata, position, 4)
    position += 4
    topics = []
    if not 0 <= count <= len(metadata) // 2:
        raise DecodeError(f"a subscription claims {count} topics in {len(metadata)} bytes", 2)
    for _ in range(count):
        size = _number(metadata, position, 2)
        position += 2
        if size < 0 or position + size > len(metadata):
            raise DecodeError(f"a topic name of {size} bytes at byte {position}", position)
        try:
            topics.append(metadata[position : position + size].decode())
        except UnicodeDecodeError:
            raise DecodeError("a topic name that is not text", position) from None
        position += size
    return topics


def _number(data: bytes, position: int, size: int) -> int:
    if position + size > len(data):
        raise DecodeError(f"a subscription ends after {len(data)} bytes", position)
    return int.from_bytes(data[position : position + size], signed=True)
