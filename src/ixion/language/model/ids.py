"""Ids of topics, clusters and directories: sixteen bytes, written as 22 characters of URL-safe base64.

    MkU3OEVBNTcwNTJENDM2Qg  <->  32 45 37 38 45 41 35 37 30 35 32 44 34 33 36 42

Zero means "none". `new_id` returns no id whose text starts with a dash: a command line would take it for an option.
"""

from __future__ import annotations

import os
from binascii import a2b_base64, b2a_base64
from typing import Final

ID_SIZE: Final = 16  # bytes
TEXT_SIZE: Final = 22  # characters
ZERO_ID: Final = bytes(ID_SIZE)

# By hand, because importing `base64` and `uuid` would take 8 ms of every start.
TO_URL: Final = bytes.maketrans(b"+/", b"-_")
FROM_URL: Final = bytes.maketrans(b"-_", b"+/")


def new_id() -> bytes:
    """A random UUID of version 4."""
    while True:
        drawn = bytearray(os.urandom(ID_SIZE))
        drawn[6] = drawn[6] & 0x0F | 0x40  # version
        drawn[8] = drawn[8] & 0x3F | 0x80  # variant
        if not id_text(drawn).startswith("-"):
            return bytes(drawn)


def id_text(value: bytes | bytearray) -> str:
    if len(value) != ID_SIZE:
        raise ValueError(f"an id has {ID_SIZE} bytes, not {len(value)}")
    return b2a_base64(value, newline=False).translate(TO_URL).decode()[:TEXT_SIZE]


def id_from_text(text: str) -> bytes:
    try:
        value = a2b_base64(text.encode().translate(FROM_URL) + b"==")
    except ValueError:
        value = b""
    # The decoder ignores unknown characters, so encode the value again and compare.
    if len(value) != ID_SIZE or id_text(value) != text:
        raise ValueError(f"{text!r} is not an id: an id has {TEXT_SIZE} characters of URL-safe base64")
    return value
