"""Ids of topics, clusters and directories: sixteen bytes, written as 22 characters of URL-safe base64.

    MkU3OEVBNTcwNTJENDM2Qg  <->  32 45 37 38 45 41 35 37 30 35 32 44 34 33 36 42

Kafka reserves the lowest ids: zero means "none", one the metadata topic of KRaft; neither is ever drawn. Nor is an id
whose text starts with a dash, which a command line would take for an option.
"""

from __future__ import annotations

import base64
import uuid
from typing import Final

ID_SIZE: Final = 16  # bytes
TEXT_SIZE: Final = 22  # characters
ZERO_ID: Final = bytes(ID_SIZE)
RESERVED_BELOW: Final = 100


def new_id() -> bytes:
    while True:
        drawn = uuid.uuid4().bytes
        if int.from_bytes(drawn) >= RESERVED_BELOW and not id_text(drawn).startswith("-"):
            return drawn


def id_text(value: bytes) -> str:
    if len(value) != ID_SIZE:
        raise ValueError(f"an id has {ID_SIZE} bytes, not {len(value)}")
    return base64.urlsafe_b64encode(value).decode().rstrip("=")


def id_from_text(text: str) -> bytes:
    try:
        value = base64.urlsafe_b64decode(text + "==")
    except ValueError:
        value = b""
    # The decoder passes over what it does not know; only the text that we would write for the value is its text.
    if len(value) != ID_SIZE or id_text(value) != text:
        raise ValueError(f"{text!r} is not an id: {TEXT_SIZE} characters of URL-safe base64 are")
    return value
