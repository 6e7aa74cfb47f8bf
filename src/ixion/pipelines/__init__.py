"""From a topic to a table in one command, exactly once, on Spark. See docs/pipelines.md.

Reading a pipeline file needs no Spark; modules that need it are imported on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from ixion.pipelines.errors import PipelineError, SpecError
    from ixion.pipelines.formats.parse import accepted, parse
    from ixion.pipelines.formats.parse import quarantined as quarantine
    from ixion.pipelines.pipeline import Pipeline
    from ixion.pipelines.sinks.make import write_table
    from ixion.pipelines.sinks.topic import once
    from ixion.pipelines.source.read import read_topic
    from ixion.pipelines.spark.session import open_session

__all__ = [
    "Pipeline",
    "PipelineError",
    "SpecError",
    "accepted",
    "once",
    "open_session",
    "parse",
    "quarantine",
    "read_topic",
    "write_table",
]

_HOMES: Final = {
    "Pipeline": "pipeline",
    "PipelineError": "errors",
    "SpecError": "errors",
    "accepted": "formats.parse",
    "once": "sinks.topic",
    "open_session": "spark.session",
    "parse": "formats.parse",
    "quarantine": "formats.parse:quarantined",
    "read_topic": "source.read",
    "write_table": "sinks.make",
}


def __getattr__(name: str) -> Any:
    home, _, other = _HOMES.get(name, "").partition(":")
    if not home:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{home}"), other or name)
    globals()[name] = value
    return value
