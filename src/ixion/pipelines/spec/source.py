"""The topics to read: `[source]`."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final, Literal

from ixion.pipelines.installed import spark_line
from ixion.pipelines.spec.section import Section

COMPLETE: Final = (4, 0)  # the last line of Spark whose connector is published with all that it needs
LIMITS_SOURCES: Final = (4, 2)  # the first one that lets a Python source limit its batches
# Metadata of a record; each becomes the column kafka_NAME.
META_COLUMNS: Final = ("topic", "partition", "offset", "timestamp", "key", "key_bytes", "headers", "tombstone")


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """Where the first run begins; later runs continue where the last one ended."""

    kind: Literal["earliest", "latest", "offsets", "time"] = "earliest"
    offsets: Mapping[str, Mapping[int, int]] = field(default_factory=dict)  # topic -> partition -> first offset
    time_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceSpec:
    bootstrap: str
    topics: tuple[str, ...] = ()
    pattern: str | None = None
    start: Start = field(default_factory=Start)
    include: tuple[str, ...] = ()
    max_records_per_batch: int | None = None
    min_partitions: int | None = None
    committed_only: bool = True
    create_missing: bool = False
    reader: Literal["connector", "ixion"] = "connector"  # Spark's own, or our data source
    # Passed to Spark's connector unchanged. They may hold passwords, so they are not shown.
    options: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def loss_allowed(self) -> bool:
        return self.options.get("failOnDataLoss", "true").lower() == "false"


def read_source(section: Section) -> SourceSpec:
    section.only(
        *("bootstrap", "topics", "pattern", "start", "include", "max_records_per_batch", "min_partitions"),
        *("committed_only", "create_missing", "reader", "options"),
    )
    topics, pattern = section.texts("topics"), section.optional_text("pattern")
    if bool(topics) == bool(pattern):
        section.fail('give either topics = ["…"] or pattern = "…"')
    if pattern is not None:
        try:
            re.compile(pattern)
        except re.error as error:
            section.fail(f"{section.label('pattern')} is no regular expression: {error}", "pattern")
    create = section.flag("create_missing", False)
    if create and pattern is not None:
        section.fail("create_missing needs topics by name, not a pattern", "create_missing")
    return SourceSpec(
        bootstrap=expand(section, "bootstrap", section.text("bootstrap", "localhost:9092")),
        topics=topics,
        pattern=pattern,
        start=_read_start(section),
        include=section.texts("include", META_COLUMNS),
        max_records_per_batch=section.number("max_records_per_batch"),
        min_partitions=section.number("min_partitions"),
        committed_only=section.flag("committed_only", True),
        create_missing=create,
        reader=_reader(section),
        options=expanded(section, "options"),
    )


def _reader(section: Section) -> Literal["connector", "ixion"]:
    """`auto` takes the connector where a complete one is published: it can do more, a run with it begins with a second
    less of processor time, and with records of 1 KB it stays ahead. The other one is faster for many small records
    (docs/pipelines.md has figures)."""
    choice = section.choice("reader", ("auto", "connector", "ixion"), "auto")
    line = spark_line() or COMPLETE
    refusal = None
    if "max_records_per_batch" in section and line < LIMITS_SOURCES:
        refusal = "has no max_records_per_batch: Spark cannot limit a Python source before 4.2"
    elif section.text_map("options").get("kafka.security.protocol", "PLAINTEXT").upper() != "PLAINTEXT":
        refusal = "has neither TLS nor SASL"
    if choice == "auto":
        choice = "connector" if line <= COMPLETE or refusal else "ixion"
    if choice == "ixion" and refusal:
        section.fail(f"reader ixion {refusal}; use reader connector", "reader")
    return "ixion" if choice == "ixion" else "connector"


def expanded(section: Section, name: str, *, leave: tuple[str, ...] = ()) -> dict[str, str]:
    """The table NAME of SECTION, with environment variables filled in; without the keys LEAVE."""
    return {key: expand(section, name, value) for key, value in section.text_map(name, leave=leave).items()}


def expand(section: Section, name: str, text: str) -> str:
    """Fill in ${NAME} from the environment, so that the file needs no passwords."""

    def replace(match: re.Match[str]) -> str:
        value = os.environ.get(match[1])
        if value is None:
            section.fail(f"{section.label(name)} uses the environment variable {match[1]}, which is not set", name)
        return value

    return re.sub(r"\$\{(\w+)\}", replace, text)


def _read_start(section: Section) -> Start:
    value = section.raw("start")
    if isinstance(value, datetime):
        return Start(kind="time", time_ms=_milliseconds(value))
    if isinstance(value, dict):
        topics = section.texts("topics")
        for topic in value:
            if topics and topic not in topics:
                section.fail(f"{section.label('start')} names {topic}, which is not among the topics", "start")
        return Start(kind="offsets", offsets={topic: _offsets(section, part) for topic, part in value.items()})
    text = section.text("start", "earliest")
    if text == "earliest":
        return Start(kind="earliest")
    if text == "latest":
        return Start(kind="latest")
    try:
        return Start(kind="time", time_ms=_milliseconds(datetime.fromisoformat(text)))
    except ValueError:
        hint = 'allowed: "earliest", "latest", a time such as 2026-01-31T08:00:00Z, or { orders = { 0 = 1200 } }'
        section.fail(f"{section.label('start')} is {text!r}", "start", hint)


def _offsets(section: Section, value: object) -> dict[int, int]:
    try:
        assert isinstance(value, dict)
        return {int(partition): int(offset) for partition, offset in value.items()}
    except (AssertionError, TypeError, ValueError):
        section.fail(f"{section.label('start')} must be written {{ topic = {{ 0 = 1200, 1 = 900 }} }}", "start")


def _milliseconds(moment: datetime) -> int:
    """A time without a zone is UTC."""
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return int(aware.timestamp() * 1000)
