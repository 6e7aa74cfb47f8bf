"""The last assignment of a member with a sticky assignor, in the user data of its subscription.

sticky: an array of (topic, array of partitions), and the generation that it was assigned in. cooperative-sticky: the
generation alone, because the subscription itself names the partitions. Kafka's Java client writes and reads the same.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

from ixion.clients.metadata import TopicPartition, by_topic

NOTHING: tuple[tuple[TopicPartition, ...], int] = ((), -1)


def write_sticky(owned: Sequence[TopicPartition], generation: int) -> bytes:
    topics = by_topic(owned)
    parts = [struct.pack(">i", len(topics))]
    for topic, numbers in topics.items():
        name = topic.encode()
        parts.append(struct.pack(">h", len(name)) + name + struct.pack(f">i{len(numbers)}i", len(numbers), *numbers))
    return b"".join([*parts, struct.pack(">i", generation)])


def read_sticky(data: bytes | None) -> tuple[tuple[TopicPartition, ...], int]:
    """Partitions and generation; empty for bytes that cannot be read. The first version had no generation."""
    if not data:
        return NOTHING
    found: list[TopicPartition] = []
    try:
        (count,) = struct.unpack_from(">i", data)
        at = 4
        for _ in range(count):
            (size,) = struct.unpack_from(">h", data, at)
            topic = data[at + 2 : at + 2 + size].decode()
            at += 2 + size
            (length,) = struct.unpack_from(">i", data, at)
            if not 0 <= length <= (len(data) - at - 4) // 4:
                return NOTHING
            found += [TopicPartition(topic, each) for each in struct.unpack_from(f">{length}i", data, at + 4)]
            at += 4 + 4 * length
        generation = struct.unpack_from(">i", data, at)[0] if len(data) >= at + 4 else -1
    except (struct.error, UnicodeDecodeError):
        return NOTHING
    return tuple(found), generation


def write_generation(generation: int) -> bytes:
    return struct.pack(">i", generation)


def read_generation(data: bytes | None) -> int:
    return int(struct.unpack(">i", data)[0]) if data is not None and len(data) == 4 else -1
