"""The name of the sibling log, in which delayed records of a partition wait.

reminders-3  has  __delay.reminders-3

A name of a log has at most 249 characters, as many as a topic may have. If a topic's name is too long for the prefix,
its end is replaced by `~`, which no name of a topic has, and a digest of the whole name.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from ixion.language.model.topic_name import MAX_LENGTH

PREFIX: Final = "__delay."
CUT: Final = "~"
DIGITS: Final = 32  # of the digest
LONGEST: Final = MAX_LENGTH - len(PREFIX)  # a topic whose sibling has its whole name
MASK: Final = 0x5DE1A95DE1A95DE1A95DE1A95DE1A900  # turns a topic id into its sibling's id and back


def sibling_of(topic: str) -> str:
    return PREFIX + topic if len(topic) <= LONGEST else _shortened(topic)


@lru_cache(64)
def _shortened(topic: str) -> str:
    from hashlib import sha256  # most brokers need it never

    return f"{PREFIX}{topic[: LONGEST - DIGITS - 1]}{CUT}{sha256(topic.encode()).hexdigest()[:DIGITS]}"


def is_sibling(name: str) -> bool:
    return name.startswith(PREFIX)


def sibling_id(topic_id: bytes) -> bytes:
    """The id with which followers fetch the sibling of a topic; for a sibling's id, the id of its topic."""
    return (int.from_bytes(topic_id, "big") ^ MASK).to_bytes(16, "big")


def topic_of(name: str, topics: Iterable[str]) -> str:
    """The topic of a log, which may be a sibling. `topics` are searched if the sibling's name was shortened."""
    if CUT in name:
        for topic in topics:
            if len(topic) > LONGEST and sibling_of(topic) == name:
                return topic
    return name.removeprefix(PREFIX)
