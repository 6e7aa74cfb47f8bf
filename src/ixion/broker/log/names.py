"""Names of partition folders and of the files in them, with Kafka's limits.

Partition 0 of topic `orders` has the folder `orders-0`. A folder to be deleted is `orders-0.<32 hex digits>-delete`, a
copy that will replace a log is `orders-0.<hex>-future`, a folder of no known topic is `orders-0.<hex>-stray`. File
names have at most 255 characters: a topic name of 249 leaves room for `-99999`, and is cut if a longer suffix does not
fit. Files are named after the first offset they can contain, in 20 digits: `00000000000000000042.log`.
"""

from __future__ import annotations

import os
import re
from typing import Final, NamedTuple

from ixion.language.model.delay_names import CUT, is_sibling
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.model.topic_name import check_topic_name

MAX_FOLDER_LENGTH: Final = 255

LOG: Final = ".log"
INDEX: Final = ".index"
TIME_INDEX: Final = ".timeindex"
TXN_INDEX: Final = ".txnindex"
SNAPSHOT: Final = ".snapshot"
DELETED: Final = ".deleted"
CLEANED: Final = ".cleaned"
SWAP: Final = ".swap"

DELETE: Final = "delete"
FUTURE: Final = "future"
STRAY: Final = "stray"

_MARKED = re.compile(r"(\S+)-([0-9]+)\.([0-9a-f]+)-(delete|future|stray)")
_PLAIN = re.compile(r"(.+)-([0-9]+)", re.DOTALL)
_NUMBERED = re.compile(r"([0-9]{20})(\.[a-z.]+)")


class PartitionFolder(NamedTuple):
    """A parsed folder name. `mark` is empty for a folder in use. In a marked folder the topic name may be cut."""

    topic: str
    partition: int
    mark: str = ""


def folder_name(topic: str, partition: int) -> str:
    check_topic_name(topic.replace(CUT, ".") if is_sibling(topic) else topic)
    if not 0 <= partition < 1 << 31:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"partition {partition} of topic {topic!r} cannot exist")
    return f"{topic}-{partition}"


def marked_folder_name(topic: str, partition: int, mark: str) -> str:
    """A new, unique name for a folder that is to be deleted, future or stray."""
    suffix = f"-{partition}.{os.urandom(16).hex()}-{mark}"
    return topic[: MAX_FOLDER_LENGTH - len(suffix)] + suffix


def parse_folder_name(name: str) -> PartitionFolder | None:
    """Reads a folder's name; None if it is not the name of a partition folder."""
    marked = _MARKED.fullmatch(name)
    if marked:
        return PartitionFolder(topic=marked[1], partition=int(marked[2]), mark=marked[4])
    plain = _PLAIN.fullmatch(name)
    if plain is None or name.endswith(("-delete", "-future", "-stray")):
        return None
    return PartitionFolder(topic=plain[1], partition=int(plain[2]))


def file_name(offset: int, suffix: str) -> str:
    return f"{offset:020d}{suffix}"


def parse_file_name(name: str) -> tuple[int, str] | None:
    """(offset, suffix) of `00000000000000000042.log.deleted`; None for a file that is not named after an offset."""
    numbered = _NUMBERED.fullmatch(name)
    if numbered is None:
        return None
    return int(numbered[1]), numbered[2]
