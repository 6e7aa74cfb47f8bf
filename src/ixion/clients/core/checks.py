"""Checks of arguments. A wrong value must not get further: it would spoil the request it travels in, and everything
else in that request."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ixion.clients.metadata import TopicPartition
from ixion.language.model.topic_name import check_topic_name

MAX_I32: Final = 2**31 - 1
MAX_I64: Final = 2**63 - 1


def check_topic(name: object) -> None:
    """TypeError if it is not text, KafkaError if no topic can have that name."""
    if not isinstance(name, str):
        raise TypeError(f"a topic name must be text, not {name!r}")
    check_topic_name(name)


def check_place(place: object) -> TopicPartition:
    """A topic and the number of a partition. TypeError, ValueError or KafkaError for anything else."""
    if not isinstance(place, tuple) or len(place) != 2:
        raise TypeError(f"a partition must be a TopicPartition, not {place!r}")
    topic, number = place
    check_topic(topic)
    if isinstance(number, bool) or not isinstance(number, int):
        raise TypeError(f"a partition number must be a whole number, not {number!r}")
    if not 0 <= number <= MAX_I32:
        raise ValueError(f"there is no partition {number}")
    return TopicPartition(topic, number)


def check_long(what: str, value: object) -> int:
    """A whole number that fits into the 64 bits of the protocol, and is not negative."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{what} must be a whole number, not {value!r}")
    if not 0 <= value <= MAX_I64:
        raise ValueError(f"{what} is {value}; allowed are whole numbers from 0 to {MAX_I64}")
    return value


def size_of_headers(headers: Sequence[object]) -> int:
    """An upper bound of their bytes. TypeError for invalid headers."""
    size = 5 + len(headers)
    for header in headers:
        if not isinstance(header, tuple | list) or len(header) != 2 or not isinstance(header[0], str):
            raise TypeError(f"a header must be a pair of a name and bytes, not {header!r}")
        name, value = header
        if value is not None and not isinstance(value, bytes | bytearray):
            raise TypeError(f"the value of header {name!r} is a {type(value).__name__}; give bytes or None")
        size += 10 + len(name.encode()) + (0 if value is None else len(value))
    return size


def check_most(max_records: int) -> int:
    """The most records that a poll may return. ValueError for less than one: such a poll could never end well."""
    if max_records < 1:
        raise ValueError(f"max_records must be at least 1, not {max_records}")
    return max_records
