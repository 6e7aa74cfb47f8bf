"""From a topic to a table in one command, exactly once, on Spark. See docs/pipelines.md.

Reading a pipeline file needs no Spark; modules that need it are imported on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from ixion.pipelines.errors import PipelineError, SpecError
    from ixion.pipelines.parsing import accepted, parse
    from ixion.pipelines.parsing import quarantined as quarantine
    from ixion.pipelines.pipeline import Pipeline
    from ixion.pipelines.session import open_session
    from ixion.pipelines.sinks.make import write_table
    from ixion.pipelines.sinks.topic import once
    from ixion.pipelines.source import read_topic

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
    "accepted": "parsing",
    "once": "sinks.topic",
    "open_session": "session",
    "parse": "parsing",
    "quarantine": "parsing:quarantined",
    "read_topic": "source",
    "write_table": "sinks.make",
}


def __getattr__(name: str) -> Any:
    home, _, other = _HOMES.get(name, "").partition(":")
    if not home:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{home}"), other or name)
    globals()[name] = value
    return value
