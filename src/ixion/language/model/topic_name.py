"""Kafka's rules for topic names."""

from __future__ import annotations

import re
from typing import Final

from ixion.language.model.errors import ErrorCode, KafkaError

MAX_LENGTH: Final = 249  # characters: with `-99999` appended, the folder's name fits the limit of file systems, 255

_LEGAL: Final = re.compile(r"[a-zA-Z0-9._-]+")


def check_topic_name(name: str) -> None:
    """Raise INVALID_TOPIC_EXCEPTION, with the reason, if the name is invalid."""
    reason = fault_of(name)
    if reason:
        raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"topic name {name!r} is invalid: {reason}")


def is_topic_name(name: str) -> bool:
    return not fault_of(name)


def fault_of(name: str) -> str:
    """Why the name is invalid; empty if it is valid."""
    if not name:
        return "it is empty"
    if name in (".", ".."):
        return "it cannot be '.' or '..'"
    if len(name) > MAX_LENGTH:
        return f"it has {len(name)} characters; {MAX_LENGTH} are allowed"
    if not _LEGAL.fullmatch(name):
        return "it may contain only ASCII letters, digits, '.', '_' and '-'"
    return ""
