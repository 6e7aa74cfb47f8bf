"""The name of the sibling log, in which delayed records of a partition wait.

reminders-3  has  __delay.reminders-3
"""

from __future__ import annotations

from typing import Final

PREFIX: Final = "__delay."
MASK: Final = 0x5DE1A95DE1A95DE1A95DE1A95DE1A900  # turns a topic id into its sibling's id and back


def sibling_of(topic: str) -> str:
    return PREFIX + topic


def is_sibling(name: str) -> bool:
    return name.startswith(PREFIX)


def sibling_id(topic_id: bytes) -> bytes:
    """The id with which followers fetch the sibling of a topic; for a sibling's id, the id of its topic."""
    return (int.from_bytes(topic_id, "big") ^ MASK).to_bytes(16, "big")


def topic_of(name: str) -> str:
    """The topic of a log, which may be a sibling."""
    return name.removeprefix(PREFIX)
