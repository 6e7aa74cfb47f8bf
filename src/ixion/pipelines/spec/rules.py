"""The rules of a pipeline: the parts of its file by which a record is judged and changed, as values for the checkpoint.

Source, sinks and quarantine are not among them, nor is any setting that may hold a password.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from ixion.pipelines.spec.format import FormatSpec, read_format
from ixion.pipelines.spec.pipeline import Expectation, PipelineSpec
from ixion.pipelines.spec.section import Section
from ixion.pipelines.spec.steps import Step, UnwrapStep, read_step

WHERE = "the checkpoint's rules"
_ELSEWHERE = ("registry", "schema", "schema_file")


def rules_of(
    values: Mapping[str, Any], schema: str | None, include: tuple[str, ...], expectations: tuple[Expectation, ...]
) -> dict[str, Any]:
    """VALUES are those of the pipeline file; SCHEMA is from it or from its schema_file."""
    format_ = {name: value for name, value in values["format"].items() if name not in _ELSEWHERE}
    return {
        "include": list(include),
        "format": format_ if schema is None else {**format_, "schema": schema},
        "steps": values.get("steps", []),
        "expectations": [asdict(one) for one in expectations],
    }


def with_rules(spec: PipelineSpec, rules: Mapping[str, Any]) -> PipelineSpec:
    """SPEC with RULES instead of its own."""
    root = Section(WHERE, {}, (), rules)
    format_ = replace(_format(root, spec), registry=spec.format.registry)
    unwrap: tuple[Step, ...] = (UnwrapStep(),) if format_.unwrap else ()
    return replace(
        spec,
        source=replace(spec.source, include=tuple(rules["include"])),
        format=format_,
        steps=(*unwrap, *(read_step(section, spec.tables) for section in root.sections("steps"))),
        expectations=tuple(Expectation(**one) for one in rules["expectations"]),
        rules=rules,
    )


def _format(root: Section, spec: PipelineSpec) -> FormatSpec:
    section = root.section("format")
    assert section is not None
    return read_format(section, spec.folder, registered=spec.format.registry is not None)
