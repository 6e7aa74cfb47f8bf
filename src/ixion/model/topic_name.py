"""Which names a topic may have, by Kafka's rules."""

from __future__ import annotations

import re
from typing import Final

from ixion.model.errors import ErrorCode, KafkaError

MAX_LENGTH: Final = 249  # characters: with `-99999` behind it, the name of a partition's folder fits a file system

_LEGAL: Final = re.compile(r"[a-zA-Z0-9._-]+")


def check_topic_name(name: str) -> None:
    """Raise INVALID_TOPIC_EXCEPTION, with the reason, if no topic can have this name."""
    reason = fault_of(name)
    if reason:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"topic name {name!r} is invalid: {reason}")


def is_topic_name(name: str) -> bool:
    return not fault_of(name)


def fault_of(name: str) -> str:
    """Why no topic can have this name; empty if one can."""
    if not name:
        return "it is empty"
    if name in (".", ".."):
        return "it cannot be '.' or '..'"
    if len(name) > MAX_LENGTH:
        return f"it has {len(name)} characters, {MAX_LENGTH} are allowed"
    if not _LEGAL.fullmatch(name):
        return "it may hold only ASCII letters, digits, '.', '_' and '-'"
    return ""
