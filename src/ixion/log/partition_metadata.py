"""`partition.metadata`: the id of the topic to which a partition folder belongs.

version: 0
topic_id: AbCdEfGhIjKlMnOpQrStUw
"""

from __future__ import annotations

import base64
import binascii
from typing import Final
from uuid import UUID

from ixion.log.corrupt import CorruptFileError
from ixion.log.files import Files

FILE_NAME: Final = "partition.metadata"


def encode_id(topic_id: UUID) -> str:
    return base64.urlsafe_b64encode(topic_id.bytes).decode().rstrip("=")


def decode_id(text: str) -> UUID:
    return UUID(bytes=base64.b64decode(text + "==", altchars=b"-_", validate=True))


def read_topic_id(path: str) -> UUID | None:
    try:
        with open(path, "rb") as file:
            lines = file.read().decode("utf-8", "replace").splitlines()
    except FileNotFoundError:
        return None
    if len(lines) != 2 or lines[0] != "version: 0":
        raise CorruptFileError(path, f"expected 'version: 0' and a topic_id, found {lines!r}")
    key, _, text = lines[1].partition(": ")
    try:
        topic_id = decode_id(text)
    except (ValueError, binascii.Error) as error:
        raise CorruptFileError(path, f"{text!r} is not a topic id") from error
    if key != "topic_id" or topic_id.int == 0:
        raise CorruptFileError(path, f"{lines[1]!r} holds no topic id")
    return topic_id


def write_topic_id(files: Files, path: str, topic_id: UUID) -> None:
    files.replace_content(path, f"version: 0\ntopic_id: {encode_id(topic_id)}".encode(), True)
