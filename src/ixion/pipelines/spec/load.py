"""Reads a pipeline file. Any mistake raises one SpecError with file, line, key and the allowed values."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from ixion.pipelines.errors import SpecError
from ixion.pipelines.spec.catalogs import read_catalogs
from ixion.pipelines.spec.format import given_schema, read_format
from ixion.pipelines.spec.lineage import read_lineage
from ixion.pipelines.spec.lines import key_lines
from ixion.pipelines.spec.pipeline import Expectation, PipelineSpec, SparkSpec
from ixion.pipelines.spec.rules import rules_of
from ixion.pipelines.spec.section import Section
from ixion.pipelines.spec.sinks import TABLE_FORMATS, Sink, TableSink, TopicSink, read_sink, read_table
from ixion.pipelines.spec.source import SourceSpec, expanded, read_source
from ixion.pipelines.spec.steps import Step, UnwrapStep, read_step, read_tables

Resolve = Callable[[str], str]


def load_spec(path: Path, shared: Mapping[str, Any] | None = None) -> PipelineSpec:
    """SHARED has defaults for settings that the file does not have."""
    try:
        text = path.read_text("utf-8")
    except FileNotFoundError:
        hint = f"ixion pipeline init {path} writes a commented example"
        raise SpecError(f"there is no file {path}", hint=hint) from None
    except (OSError, UnicodeDecodeError) as error:
        raise SpecError(f"{path} cannot be read: {error}") from None
    return read_spec(text, file=path.name, folder=path.resolve().parent, shared=shared)


def read_spec(
    text: str, *, file: str = "pipeline.toml", folder: Path = Path(), shared: Mapping[str, Any] | None = None
) -> PipelineSpec:
    """Relative paths in TEXT are relative to FOLDER, not to the working directory."""
    try:
        values = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise _bad_toml(file, text, str(error)) from None
    values = _merged(shared or {}, values)
    root = Section(file, key_lines(text), (), values)
    root.only(
        *("name", "source", "format", "steps", "tables", "expectations", "sinks", "quarantine"),
        *("checkpoint", "every", "spark", "lineage", "catalogs"),
    )

    def resolve(path: str) -> str:
        return path if "://" in path else str((folder / Path(path).expanduser()).absolute())

    name = root.text("name", Path(file).stem)
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]*", name):
        root.fail(f"name is {name!r}; letters, digits, '.', '_' and '-' are allowed", "name")
    source = read_source(root.needed_section("source", 'the least is:\n[source]\ntopics = ["orders"]'))
    tables = read_tables(root.section("tables"), resolve)
    sinks = tuple(read_sink(section, source.bootstrap, source.options, resolve) for section in root.sections("sinks"))
    if not sinks:
        root.fail("there is no [[sinks]]", hint='the least is:\n[[sinks]]\ntype = "parquet"\npath = "lake/orders"')
    quarantine = _quarantine(root, sinks, name, resolve)
    _refuse_twins(root, sinks, quarantine)
    _refuse_circles(root, source, sinks)
    expectations = (*(_expectation(section) for section in root.sections("expectations")), *_of_upserts(sinks))
    format_ = read_format(root.needed_section("format", 'the least is:\n[format]\ntype = "json"'), folder)
    unwrap: tuple[Step, ...] = (UnwrapStep(),) if format_.unwrap else ()
    return PipelineSpec(
        name=name,
        source=source,
        format=format_,
        steps=(*unwrap, *(read_step(section, tables) for section in root.sections("steps"))),
        tables=tables,
        expectations=expectations,
        sinks=sinks,
        quarantine=quarantine,
        checkpoint=resolve(root.text("checkpoint", f".ixion/{name}")),
        every_ms=root.duration_ms("every"),
        catalogs=read_catalogs(root.section("catalogs")),
        lineage=read_lineage(root.section("lineage"), root, resolve),
        spark=_spark(root.section("spark"), resolve),
        folder=folder,
        rules=rules_of(values, given_schema(root.needed_section("format", ""), folder), source.include, expectations),
    )


def _merged(shared: Mapping[str, Any], own: Mapping[str, Any]) -> dict[str, Any]:
    """SHARED with the values of OWN, which take precedence key by key."""
    merged = {**shared, **own}
    for name, value in shared.items():
        if isinstance(value, dict) and isinstance(own.get(name), dict):
            merged[name] = _merged(value, own[name])
    return merged


def _bad_toml(file: str, text: str, message: str) -> SpecError:
    match = re.search(r" \(at line (\d+), column (\d+)\)$", message)
    if match is None:
        return SpecError(f"this is not TOML: {message.removesuffix(' (at end of document)')} at the end", where=file)
    line, column = int(match[1]), int(match[2])
    shown = text.splitlines()[line - 1] if line <= text.count("\n") + 1 else ""
    pointer = f"{shown}\n{' ' * (column - 1)}^"
    return SpecError(f"this is not TOML: {message[: match.start()]}", where=f"{file}:{line}", hint=pointer)


def _expectation(section: Section) -> Expectation:
    section.only("name", "check", "otherwise", "on")
    check = section.text("check")
    return Expectation(
        name=section.text("name", check),
        check=check,
        otherwise=section.choice("otherwise", ("warn", "drop", "quarantine", "fail")),
        on=section.choice("on", ("record", "result"), "record"),
    )


def _of_upserts(sinks: tuple[Sink, ...]) -> list[Expectation]:
    """A row without its key or its order cannot be merged; it goes to the quarantine."""
    merges = [sink.upsert for sink in sinks if isinstance(sink, TableSink) and sink.upsert]
    names = dict.fromkeys(name for upsert in merges for name in (*upsert.keys, upsert.order))
    return [
        Expectation(name=f"{name} is there", check=f"`{name}` IS NOT NULL", otherwise="quarantine", on="result")
        for name in names
    ]


def _quarantine(root: Section, sinks: tuple[Sink, ...], name: str, resolve: Resolve) -> TableSink:
    """The declared quarantine; by default a table beside the first one, in its format."""
    first = next((sink for sink in sinks if isinstance(sink, TableSink)), None)
    kind = first.format if first else "parquet"
    section = root.section("quarantine")
    if section is not None:
        return read_table(section, section.choice("type", TABLE_FORMATS, kind), resolve)
    if first is None:
        return TableSink(format=kind, path=resolve(f"{name}_quarantine"))
    if first.table:
        return TableSink(format=kind, table=f"{first.table}_quarantine")
    return TableSink(format=kind, path=f"{first.path.rstrip('/')}_quarantine")


def _refuse_circles(root: Section, source: SourceSpec, sinks: tuple[Sink, ...]) -> None:
    """A pipeline that reads the topic it writes to would never end."""
    for number, sink in enumerate(sinks):
        if isinstance(sink, TopicSink) and sink.bootstrap == source.bootstrap:
            found = re.fullmatch(source.pattern, sink.topic) if source.pattern else sink.topic in source.topics
            if found:
                root.sections("sinks")[number].fail(f"topic {sink.topic} is read by this pipeline", "topic")


def _refuse_twins(root: Section, sinks: tuple[Sink, ...], quarantine: TableSink) -> None:
    if (quarantine.path, quarantine.table) in [
        (sink.path, sink.table) for sink in sinks if isinstance(sink, TableSink)
    ]:
        root.fail(f"{quarantine.label} is both a sink and the quarantine", "quarantine")
    labels = [sink.label for sink in sinks]
    for number, label in enumerate(labels):
        if label in labels[:number]:
            root.sections("sinks")[number].fail(f"two sinks write to {label}")


def _spark(section: Section | None, resolve: Resolve) -> SparkSpec:
    if section is None:
        return SparkSpec()
    section.only("master", "conf", "jars", "class_archive")
    return SparkSpec(
        master=section.optional_text("master"),
        conf=expanded(section, "conf"),
        jars=tuple(resolve(jar) for jar in section.texts("jars")),
        class_archive=section.flag("class_archive", True),
    )
