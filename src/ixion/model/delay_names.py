"""The name of the log in which delayed records of a partition wait, beside the partition's own.

reminders-3  has  __delay.reminders-3
"""

from __future__ import annotations

from typing import Final

PREFIX: Final = "__delay."
MASK: Final = 0x5DE1A95DE1A95DE1A95DE1A95DE1A900  # of a topic id


def sibling_of(topic: str) -> str:
    return PREFIX + topic


def is_sibling(name: str) -> bool:
    return name.startswith(PREFIX)


def sibling_id(topic_id: bytes) -> bytes:
    """The id by which followers fetch the sibling of a topic; of that id, the id of the topic."""
    return (int.from_bytes(topic_id, "big") ^ MASK).to_bytes(16, "big")


def topic_of(name: str) -> str:
    """The topic that a log belongs to, be it a sibling or the topic's own."""
    return name.removeprefix(PREFIX)
