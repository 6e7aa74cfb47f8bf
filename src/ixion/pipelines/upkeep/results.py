"""The results of upkeep, for one table and in total; see `upkeep`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from ixion.pipelines.batch.metrics import label

Totals = Mapping[str, float]  # field of SUMMED -> sum


@dataclass(frozen=True, slots=True, kw_only=True)
class Upkept:
    """The result of one upkeep of a table."""

    table: str
    at: str  # ISO 8601, UTC
    joined: int = 0  # files that were replaced by larger ones
    into: int = 0  # those larger files
    removed_files: int = 0
    removed_bytes: int = 0
    removed_versions: int = 0
    seconds: float = 0.0
    left: str = ""  # why nothing was done

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def line(self) -> str:
        if self.left:
            return f"{self.table}: postponed, {self.left}"
        parts = [f"{self.joined:,} files joined into {self.into:,}"] if self.joined else []
        if self.removed_versions:
            parts.append(f"{self.removed_versions:,} versions removed")
        if self.removed_files:
            parts.append(f"{self.removed_files:,} files removed, {self.removed_bytes / 1e6:,.1f} MB")
        return f"{self.table}: {', '.join(parts) or 'nothing to do'} · {self.seconds:.1f} s"


SUMMED: Final = {
    "joined": ("joined_files", "Files that upkeep replaced by larger ones."),
    "into": ("joined_into_files", "Files that upkeep joined others into."),
    "removed_files": ("removed_files", "Files that upkeep removed."),
    "removed_bytes": ("removed_bytes", "Bytes of files that upkeep removed."),
    "removed_versions": ("removed_versions", "Old versions of a table that upkeep removed."),
    "seconds": ("seconds", "Time that upkeep took."),
}


def plus(totals: Totals, done: Mapping[str, Any]) -> dict[str, float]:
    """TOTALS plus the result DONE, from `Upkept.to_json`."""
    return {name: totals.get(name, 0) + done.get(name, 0) for name in SUMMED}


def upkeep_lines(pipelines: Mapping[str, Mapping[str, Totals]]) -> Iterator[str]:
    """Pipeline -> table -> totals, as lines in Prometheus' text format; none if there was no upkeep."""
    if not any(pipelines.values()):
        return
    for name, (word, text) in SUMMED.items():
        metric = f"ixion_pipeline_upkeep_{word}_total"
        yield f"# HELP {metric} {text}\n# TYPE {metric} counter\n"
        for pipeline, tables in pipelines.items():
            for table, totals in tables.items():
                yield f"{metric}{{{label('pipeline', pipeline)},{label('table', table)}}} {totals.get(name, 0)}\n"
