"""The targets of the rows: `[[sinks]]`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from ixion.pipelines.spec.section import Section
from ixion.pipelines.spec.shape import check_order, check_partitions
from ixion.pipelines.spec.source import expanded
from ixion.pipelines.spec.upkeep import UpkeepSpec, read_upkeep
from ixion.pipelines.spec.upsert import SETTINGS, UpsertSpec, read_upsert

TABLE_FORMATS: Final = ("parquet", "delta", "iceberg")
_SINKS: Final = (*TABLE_FORMATS, "topic", "console")


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSink:
    format: str
    path: str = ""
    table: str = ""  # Iceberg: a name in one of Spark's catalogs, instead of a path
    partition_by: tuple[str, ...] = ()
    sort_by: tuple[str, ...] = ()  # Iceberg: the order of rows when files are joined
    properties: Mapping[str, str] = field(default_factory=dict)  # of the table
    upsert: UpsertSpec | None = None  # None: rows are added
    evolve: bool = False  # change the table to fit rows with other columns
    renames: Mapping[str, str] = field(default_factory=dict)  # old column name -> new name
    upkeep: UpkeepSpec = field(default_factory=UpkeepSpec)
    options: Mapping[str, str] = field(default_factory=dict, repr=False)  # may hold passwords

    @property
    def label(self) -> str:
        return f"{self.format} {self.table or self.path}"


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicSink:
    """VALUE is a column of text or bytes; None: the value is the whole row as JSON."""

    topic: str
    bootstrap: str
    key: str | None = None
    value: str | None = None
    exactly_once: bool = False  # by format("ixion"); else at least once, by Spark's connector
    options: Mapping[str, str] = field(default_factory=dict, repr=False)  # may hold passwords

    @property
    def label(self) -> str:
        return f"topic {self.topic}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsoleSink:
    rows: int = 20

    @property
    def label(self) -> str:
        return "console"


Sink = TableSink | TopicSink | ConsoleSink


def read_sink(section: Section, bootstrap: str, options: Mapping[str, str], resolve: Callable[[str], str]) -> Sink:
    """BOOTSTRAP and OPTIONS are the source's; a topic sink without a bootstrap uses them."""
    kind = section.choice("type", _SINKS)
    if kind == "console":
        section.only("type", "rows")
        return ConsoleSink(rows=section.number("rows") or 20)
    if kind == "topic":
        section.only("type", "topic", "bootstrap", "key", "value", "exactly_once", "options")
        own = section.optional_text("bootstrap")
        shared = {} if own else {name: value for name, value in options.items() if name.startswith("kafka.")}
        return TopicSink(
            topic=section.text("topic"),
            bootstrap=own or bootstrap,
            key=section.optional_text("key"),
            value=section.optional_text("value"),
            exactly_once=section.flag("exactly_once", False),
            options={**shared, **expanded(section, "options")},
        )
    return read_table(section, kind, resolve, (*SETTINGS, "evolve", "renames"))


def read_table(section: Section, kind: str, resolve: Callable[[str], str], more: tuple[str, ...] = ()) -> TableSink:
    section.only("type", "path", "table", "partition_by", "sort_by", "properties", "upkeep", "options", *more)
    path, table = section.optional_text("path"), section.optional_text("table")
    if table is not None and kind != "iceberg":
        section.fail("only an iceberg sink can have a table; the others need a path", "table")
    if (path is None) == (table is None):
        section.fail(f"a {kind} sink needs " + ("either a path or a table" if kind == "iceberg" else "a path"))
    evolve, renames = section.flag("evolve", False), section.text_map("renames")
    if renames and not evolve:
        section.fail("renames change the table: they need evolve = true", "renames")
    if renames and kind == "parquet":
        section.fail("the columns of a parquet table cannot be renamed; those of delta and iceberg can", "renames")
    partition_by, sort_by = section.texts("partition_by"), section.texts("sort_by")
    check_partitions(section, partition_by, kind)
    check_order(section, sort_by, kind)
    properties = section.text_map("properties")
    if kind == "parquet" and properties:
        section.fail("a parquet table has no properties; delta and iceberg tables have", "properties")
    for name in properties:
        if kind == "delta" and not name.startswith("delta."):
            section.fail(
                f"{section.label('properties')}: {name} is unknown to Delta; its properties begin with delta.",
                "properties",
            )
    return TableSink(
        format=kind,
        path=resolve(path) if path else "",
        table=table or "",
        partition_by=partition_by,
        sort_by=sort_by,
        properties=properties,
        upsert=read_upsert(section, kind) if more else None,
        evolve=evolve,
        renames=renames,
        upkeep=read_upkeep(section.section("upkeep"), kind),
        options=expanded(section, "options"),
    )
