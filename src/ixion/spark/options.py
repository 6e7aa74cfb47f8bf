"""The options of `format("ixion")`: names, values and defaults as Spark's Kafka connector has them.

An unknown or unsupported option is an error that names it: a misspelt `startingOffset` must not start a query somewhere
else.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any, Final, NamedTuple

from ixion.clients.metadata import TopicPartition
from ixion.clients.security import NAMES as SECURITY_SETTINGS
from ixion.clients.security import read_security
from ixion.clients.starts import EARLIEST, LATEST

EARLIEST_OFFSET: Final = -2  # in JSON, as in the connector
LATEST_OFFSET: Final = -1
# Of one fetch, and so of one Arrow batch. Each batch has its price in the worker and in the JVM, however small it is.
PARTITION_BYTES: Final = 1024 * 1024

# Option -> setting of our clients. A context of Python cannot be an option.
SECURITY: Final = {
    f"kafka.{name.replace('_', '.')}": name for name in sorted(SECURITY_SETTINGS - {"ssl_context", "sasl_tokenauth"})
}
SUBSCRIPTIONS: Final = ("subscribe", "subscribePattern", "assign")
NAMES: Final = (
    "kafka.bootstrap.servers",
    "kafka.isolation.level",
    "kafka.client.id",
    "kafka.max.partition.fetch.bytes",
    *SUBSCRIPTIONS,
    *("startingOffsets", "startingOffsetsByTimestamp", "startingTimestamp", "startingOffsetsByTimestampStrategy"),
    *("endingOffsets", "endingOffsetsByTimestamp", "endingTimestamp"),
    *("includeHeaders", "failOnDataLoss", "minPartitions", "maxRecordsPerPartition", "maxOffsetsPerTrigger"),
    "timeoutSeconds",
    *SECURITY,
)


class Subscription(NamedTuple):
    """What to read: topics, partitions or a pattern."""

    topics: tuple[str, ...] = ()
    pattern: str = ""
    partitions: tuple[TopicPartition, ...] = ()


class Edge(NamedTuple):
    """Where ranges begin or end: at one end or time for all (`time_ms`), or at offsets or times by partition."""

    time_ms: int = EARLIEST
    offsets: dict[TopicPartition, int] | None = None
    times: dict[TopicPartition, int] | None = None


class Options(NamedTuple):
    bootstrap: str
    client_id: str
    security: dict[str, Any]  # settings of our clients
    subscription: Subscription
    start: Edge | None  # None: earliest in a batch query, latest in a stream
    end: Edge | None  # None: latest
    missing_time_is_latest: bool  # a start by time that no record has reached
    read_committed: bool
    headers: bool
    fail_on_data_loss: bool
    min_partitions: int
    max_records_per_partition: int
    max_offsets_per_trigger: int
    timeout_s: float
    partition_bytes: int


def read_options(given: Mapping[str, str]) -> Options:
    """ValueError for options that are misspelt, contradictory or unsupported. Names ignore case."""
    known = {name.lower(): name for name in NAMES}
    found: dict[str, str] = {}
    for name, value in given.items():
        if name.lower() not in known:
            raise ValueError(unknown(name))
        found[known[name.lower()]] = value
    if "kafka.bootstrap.servers" not in found:
        raise ValueError("the option kafka.bootstrap.servers is missing")
    isolation = found.get("kafka.isolation.level", "read_uncommitted")
    if isolation not in ("read_uncommitted", "read_committed"):
        raise ValueError(f"kafka.isolation.level is read_uncommitted or read_committed, not {isolation!r}")
    strategy = found.get("startingOffsetsByTimestampStrategy", "error").lower()
    if strategy not in ("error", "latest"):
        raise ValueError(f"startingOffsetsByTimestampStrategy is error or latest, not {strategy!r}")
    return Options(
        bootstrap=found["kafka.bootstrap.servers"],
        client_id=found.get("kafka.client.id", "ixion-spark"),
        security=read_security_options(found),
        subscription=read_subscription(found),
        start=read_edge(found, "starting"),
        end=read_edge(found, "ending"),
        missing_time_is_latest=strategy == "latest",
        read_committed=isolation == "read_committed",
        headers=read_switch(found, "includeHeaders", False),
        fail_on_data_loss=read_switch(found, "failOnDataLoss", True),
        min_partitions=read_number(found, "minPartitions"),
        max_records_per_partition=read_number(found, "maxRecordsPerPartition"),
        max_offsets_per_trigger=read_number(found, "maxOffsetsPerTrigger"),
        timeout_s=float(read_number(found, "timeoutSeconds") or 60),
        partition_bytes=read_number(found, "kafka.max.partition.fetch.bytes") or PARTITION_BYTES,
    )


def read_security_options(found: Mapping[str, str]) -> dict[str, Any]:
    """The settings of our clients that the options stand for."""
    settings = {setting: found[option] for option, setting in SECURITY.items() if option in found}
    try:
        read_security(settings)
    except TypeError as error:
        raise ValueError(str(error)) from None
    return settings


def unknown(name: str) -> str:
    if name.lower().startswith("kafka."):
        kept = ", ".join(known for known in NAMES if known.startswith("kafka.") and known not in SECURITY)
        return f"format('ixion') has no option {name}; of Kafka's own settings it takes {kept}, {', '.join(SECURITY)}"
    near = get_close_matches(name, NAMES, n=1)
    return f"format('ixion') has no option {name}" + (f"; did you mean {near[0]}?" if near else "")


def read_subscription(found: Mapping[str, str]) -> Subscription:
    named = [name for name in SUBSCRIPTIONS if name in found]
    if len(named) != 1:
        raise ValueError(f"exactly one of {', '.join(SUBSCRIPTIONS)} must be given, not {len(named)}")
    text = found[named[0]]
    if named[0] == "subscribePattern":
        try:
            re.compile(text)
        except re.error as error:
            raise ValueError(f"subscribePattern {text!r} is no regular expression: {error}") from None
        return Subscription(pattern=text)
    if named[0] == "subscribe":
        topics = tuple(dict.fromkeys(topic.strip() for topic in text.split(",") if topic.strip()))
        if not topics:
            raise ValueError("subscribe names no topic")
        return Subscription(topics=topics)
    places = read_json("assign", text)
    if not all(isinstance(numbers, list) and all(map(is_number, numbers)) for numbers in places.values()):
        raise ValueError(f'assign is JSON such as {{"orders": [0, 1]}}, not {text}')
    return Subscription(
        partitions=tuple(TopicPartition(topic, number) for topic, numbers in places.items() for number in numbers)  # type: ignore[attr-defined]
    )


def read_edge(found: Mapping[str, str], side: str) -> Edge | None:
    """The first that is given counts: a time for all, times by partition, offsets."""
    if f"{side}Timestamp" in found:
        text = found[f"{side}Timestamp"]
        if not text.isdigit():
            raise ValueError(f"{side}Timestamp is a number of milliseconds, not {text!r}")
        return Edge(int(text))
    name = f"{side}OffsetsByTimestamp"
    if name in found:
        return Edge(times=by_partition(name, found[name], 0))
    name = f"{side}Offsets"
    text = found.get(name, "").strip()
    if not text:
        return None
    if text.lower() in ("earliest", "latest"):
        return Edge(EARLIEST if text.lower() == "earliest" else LATEST)
    return Edge(offsets=by_partition(name, text, EARLIEST_OFFSET))


def by_partition(name: str, text: str, least: int) -> dict[TopicPartition, int]:
    found: dict[TopicPartition, int] = {}
    for topic, numbers in read_json(name, text).items():
        if not isinstance(numbers, dict):
            raise ValueError(f'{name} is JSON such as {{"orders": {{"0": 23}}}}, not {text}')
        for number, value in numbers.items():
            if not number.isdigit() or not is_number(value) or value < least:
                raise ValueError(f"{name} has {value!r} for partition {number!r} of {topic!r}")
            found[TopicPartition(topic, int(number))] = value
    return found


def read_json(name: str, text: str) -> dict[str, object]:
    try:
        found = json.loads(text)
    except ValueError as error:
        raise ValueError(f"{name} is neither a known word nor JSON: {text!r} ({error})") from None
    if not isinstance(found, dict):
        raise ValueError(f"{name} is a JSON object, not {text}")
    return found


def is_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def read_switch(found: Mapping[str, str], name: str, default: bool) -> bool:
    text = found.get(name, str(default)).strip().lower()
    if text not in ("true", "false"):
        raise ValueError(f"{name} is true or false, not {text!r}")
    return text == "true"


def read_number(found: Mapping[str, str], name: str) -> int:
    """The number of an option; 0 if it is not given."""
    text = found.get(name, "").strip()
    if name in found and (not text.isdigit() or int(text) == 0):
        raise ValueError(f"{name} is a whole number above 0, not {text!r}")
    return int(text or 0)
