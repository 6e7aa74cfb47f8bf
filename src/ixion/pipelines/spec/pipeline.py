"""The declaration of a whole pipeline."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ixion.pipelines.spec.catalogs import CatalogSpec
from ixion.pipelines.spec.format import FormatSpec
from ixion.pipelines.spec.lineage import LineageSpec
from ixion.pipelines.spec.sinks import Sink, TableSink, TopicSink
from ixion.pipelines.spec.source import SourceSpec
from ixion.pipelines.spec.steps import Step, TableSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Expectation:
    name: str
    check: str  # a SQL predicate; a row must make it true
    otherwise: str  # warn, drop, quarantine or fail
    on: str = "record"  # record: parsed records, before the steps; result: rows after them


@dataclass(frozen=True, slots=True, kw_only=True)
class SparkSpec:
    master: str | None = None
    conf: Mapping[str, str] = field(default_factory=dict, repr=False)  # may hold passwords
    jars: tuple[str, ...] = ()
    class_archive: bool = True  # start Spark with a class archive, and create one (see `class_archive`)


@dataclass(frozen=True, slots=True, kw_only=True)
class PipelineSpec:
    name: str
    source: SourceSpec
    format: FormatSpec
    sinks: tuple[Sink, ...]
    quarantine: TableSink  # for bad records and rows
    checkpoint: str
    steps: tuple[Step, ...] = ()
    tables: Mapping[str, TableSpec] = field(default_factory=dict)
    expectations: tuple[Expectation, ...] = ()
    every_ms: int | None = None  # between two batches, when following
    lineage: LineageSpec | None = None
    catalogs: tuple[CatalogSpec, ...] = ()
    spark: SparkSpec = field(default_factory=SparkSpec)
    folder: Path = field(default_factory=Path)  # Python steps are imported from here
    rules: Mapping[str, Any] = field(default_factory=dict, repr=False)  # format, steps, expectations (see `spec.rules`)

    def needs_connector(self) -> bool:
        """Whether Spark's Kafka connector reads or writes a topic."""
        written = [sink for sink in self.sinks if isinstance(sink, TopicSink)]
        return self.source.reader == "connector" or not all(sink.exactly_once for sink in written)

    def formats(self) -> set[str]:
        """The formats of all tables that are read or written, and the drivers of catalogs: they need jars."""
        written = {sink.format for sink in self.sinks if isinstance(sink, TableSink)}
        drivers = {catalog.driver for catalog in self.catalogs if catalog.driver}
        return written | {self.quarantine.format} | {table.format for table in self.tables.values()} | drivers
