"""The steps after parsing, `[[steps]]`, each of one kind; and the tables that they can join, `[tables.NAME]`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from ixion.pipelines.spec.section import Section
from ixion.pipelines.spec.source import expanded


@dataclass(frozen=True, slots=True, kw_only=True)
class SqlStep:
    query: str  # over the view `stream` and the declared tables


@dataclass(frozen=True, slots=True, kw_only=True)
class PythonStep:
    function: str  # "module:name"; takes a DataFrame and returns one


@dataclass(frozen=True, slots=True, kw_only=True)
class WatermarkStep:
    column: str
    delay_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DeduplicateStep:
    columns: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowStep:
    column: str
    size_ms: int
    slide_ms: int | None
    by: tuple[str, ...]
    aggregates: Mapping[str, str]  # column -> SQL aggregate


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinStep:
    table: str
    on: tuple[str, ...]
    how: str


@dataclass(frozen=True, slots=True, kw_only=True)
class UnwrapStep:
    """Takes the row out of Debezium's envelope; format debezium adds it as the first step."""


Step = UnwrapStep | SqlStep | PythonStep | WatermarkStep | DeduplicateStep | WindowStep | JoinStep


@dataclass(frozen=True, slots=True, kw_only=True)
class TableSpec:
    """A table to join with; it is not a stream."""

    path: str
    format: str
    options: Mapping[str, str] = field(default_factory=dict, repr=False)  # may hold passwords


def read_step(section: Section, tables: Mapping[str, TableSpec]) -> Step:
    kinds = [name for name in section.names() if name in _READERS]
    if len(kinds) != 1:
        section.only(*_READERS)
        section.fail("a step has exactly one key", hint=f"one of: {', '.join(_READERS)}")
    section.only(kinds[0])
    step = _READERS[kinds[0]](section)
    if isinstance(step, JoinStep) and step.table not in tables:
        section.fail(f"there is no [tables.{step.table}] to join", "join")
    return step


def read_tables(section: Section | None, resolve: Callable[[str], str]) -> dict[str, TableSpec]:
    tables: dict[str, TableSpec] = {}
    for name in section.names() if section else []:
        assert section is not None
        table = section.section(name)
        assert table is not None
        if name == "stream" or not re.fullmatch(r"[A-Za-z_]\w*", name):
            section.fail(f"{name!r} cannot be the name of a table in SQL", name)
        table.only("path", "format", "options")
        tables[name] = TableSpec(
            path=resolve(table.text("path")),
            format=table.choice("format", ("parquet", "delta", "iceberg", "csv", "json"), "parquet"),
            options=expanded(table, "options"),
        )
    return tables


def _sql(section: Section) -> SqlStep:
    query = section.text("sql").strip().rstrip(";")
    first = re.sub(r"^(?:\s|\(|--[^\n]*\n|/\*.*?\*/)+", "", query, flags=re.DOTALL)
    if not re.match(r"(?:SELECT|WITH|FROM|VALUES|TABLE)\b", first, re.IGNORECASE):
        section.fail("a SQL step is a query and changes nothing: SELECT … FROM stream", "sql")
    return SqlStep(query=query)


def _python(section: Section) -> PythonStep:
    function = section.text("python")
    if not re.fullmatch(r"[\w.]+:\w+", function):
        section.fail(f'{section.label("python")} is {function!r}; write "module:function"', "python")
    return PythonStep(function=function)


def _watermark(section: Section) -> WatermarkStep:
    table = section.needed_section("watermark", "")
    table.only("column", "delay")
    delay_ms = table.duration_ms("delay")
    if delay_ms is None:
        table.fail(f'{table.label("delay")} is missing: how late a record may be, such as "10 minutes"')
    return WatermarkStep(column=table.text("column"), delay_ms=delay_ms)


def _deduplicate(section: Section) -> DeduplicateStep:
    columns = section.texts("deduplicate")
    if not columns:
        section.fail("deduplicate needs the columns that make two records the same", "deduplicate")
    return DeduplicateStep(columns=columns)


def _window(section: Section) -> WindowStep:
    table = section.needed_section("window", "")
    table.only("column", "size", "slide", "by", "aggregates")
    size_ms = table.duration_ms("size")
    if not size_ms:
        table.fail(f'{table.label("size")} is missing: the length of a window, such as "1 hour"')
    aggregates = table.text_map("aggregates")
    if not aggregates:
        table.fail('a window needs aggregates = { orders = "count(*)" }')
    slide_ms = table.duration_ms("slide")
    if slide_ms is not None and not 0 < slide_ms <= size_ms:
        table.fail(f"{table.label('slide')} must be above zero and not above the size of the window", "slide")
    return WindowStep(
        column=table.text("column"),
        size_ms=size_ms,
        slide_ms=slide_ms,
        by=table.texts("by"),
        aggregates=aggregates,
    )


def _join(section: Section) -> JoinStep:
    table = section.needed_section("join", "")
    table.only("table", "on", "how")
    on = table.texts("on")
    if not on:
        table.fail('a join needs on = ["…"], the columns that both sides have')
    return JoinStep(table=table.text("table"), on=on, how=table.choice("how", ("inner", "left"), "left"))


_READERS: Final[Mapping[str, Callable[[Section], Step]]] = {
    "sql": _sql,
    "python": _python,
    "watermark": _watermark,
    "deduplicate": _deduplicate,
    "window": _window,
    "join": _join,
}
