"""`partition.metadata`: the id of the topic to which a partition folder belongs.

version: 0
topic_id: AbCdEfGhIjKlMnOpQrStUw
"""

from __future__ import annotations

from typing import Final

from ixion.broker.log.corrupt import CorruptFileError
from ixion.broker.log.files import Files
from ixion.language.model.ids import ZERO_ID, id_from_text, id_text

FILE_NAME: Final = "partition.metadata"


def read_topic_id(files: Files, path: str) -> bytes | None:
    try:
        lines = files.read_file(path).decode("utf-8", "replace").splitlines()
    except FileNotFoundError:
        return None
    if len(lines) != 2 or lines[0] != "version: 0":
        raise CorruptFileError(path, f"expected 'version: 0' and a topic_id, found {lines!r}")
    key, _, text = lines[1].partition(": ")
    try:
        topic_id = id_from_text(text)
    except ValueError as error:
        raise CorruptFileError(path, f"{text!r} is not a topic id") from error
    if key != "topic_id" or topic_id == ZERO_ID:
        raise CorruptFileError(path, f"{lines[1]!r} is not a topic id")
    return topic_id


def write_topic_id(files: Files, path: str, topic_id: bytes) -> None:
    files.replace_content(path, f"version: 0\ntopic_id: {id_text(topic_id)}".encode(), True)
