"""The figures of a pipeline: of one batch, of a run; as a line, as JSON, as Prometheus text."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from typing import Any, Final

NAMED: Final = 100  # new fields that a run names
TOOK_S: Final = (0.5, 1, 2.5, 5, 10, 30, 60, 300, 1800)  # buckets for the time of a batch
Offsets = Mapping[str, Mapping[str, int]]  # topic -> partition -> next offset


@dataclass(frozen=True, slots=True, kw_only=True)
class BatchFigures:
    batch: int
    ended: str = ""  # ISO 8601, UTC
    rows_in: int = 0
    rows_out: int = 0
    quarantined: int = 0
    dropped: int = 0
    late: int = 0  # behind the watermark
    warned: Mapping[str, int] = field(default_factory=dict)  # expectation -> rows
    broken: Mapping[str, int] = field(default_factory=dict)  # the same for every expectation, whatever `otherwise` says
    drifted: int = 0  # records with fields that are not in the schema
    new_fields: Mapping[str, str] = field(default_factory=dict)  # the first few such fields -> what was done with them
    lag: int = 0  # offsets between the last read one and the end of the topics
    duration_ms: int = 0
    rows_per_s: float = 0.0
    offsets: Offsets = field(default_factory=dict)
    repeated: bool = False  # it had been written before; its rows were not counted again
    run: str = ""  # the id of the run that wrote it

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    def line(self) -> str:
        parts = [f"batch {self.batch}", f"{self.rows_in:,} rows in", f"{self.rows_out:,} out"]
        for name, count in (("quarantined", self.quarantined), ("dropped", self.dropped), ("late", self.late)):
            if count:
                parts.append(f"{count:,} {name}")
        parts += [f"warned {name}: {count:,}" for name, count in self.warned.items() if count]
        parts += [f"new field {name} {done}" for name, done in self.new_fields.items()]
        parts += [f"{self.rows_per_s:,.0f} rows/s", f"lag {self.lag:,}", f"{self.duration_ms / 1000:.1f} s"]
        if self.repeated:
            parts.append("was there already")
        return " · ".join(parts)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFigures:
    """The figures of all batches of a run, or of a history."""

    batches: int = 0
    rows_in: int = 0
    rows_out: int = 0
    quarantined: int = 0
    dropped: int = 0
    late: int = 0
    warned: int = 0
    drifted: int = 0
    new_fields: Mapping[str, str] = field(default_factory=dict)
    lag: int = 0
    busy_ms: int = 0
    last_batch_ms: int = 0  # how long it took
    last_batch_at: float = 0.0  # when it began, in seconds since 1970; 0 if that is not known
    broken: Mapping[str, int] = field(default_factory=dict)  # expectation -> rows that do not meet it
    took: Mapping[str, int] = field(default_factory=dict)  # batches by the TOOK_S bucket of their time

    def plus(self, batch: BatchFigures) -> RunFigures:
        return replace(
            self,
            batches=self.batches + 1,
            rows_in=self.rows_in + batch.rows_in,
            rows_out=self.rows_out + batch.rows_out,
            quarantined=self.quarantined + batch.quarantined,
            dropped=self.dropped + batch.dropped,
            late=self.late + batch.late,
            warned=self.warned + sum(batch.warned.values()),
            drifted=self.drifted + batch.drifted,
            new_fields={**self.new_fields, **batch.new_fields} if len(self.new_fields) < NAMED else self.new_fields,
            lag=batch.lag,
            busy_ms=self.busy_ms + batch.duration_ms,
            last_batch_ms=batch.duration_ms,
            broken=_sum(self.broken, batch.broken),
            took=_sum(self.took, {_bucket(batch.duration_ms / 1000): 1}),
            last_batch_at=datetime.fromisoformat(batch.ended).timestamp() if batch.ended else self.last_batch_at,
        )

    @property
    def rows_per_s(self) -> float:
        return self.rows_in / (self.busy_ms / 1000) if self.busy_ms else 0.0

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "rows_per_s": round(self.rows_per_s, 1)}


def _sum(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    return {name: one.get(name, 0) + other.get(name, 0) for name in {**one, **other}}


def _bucket(seconds: float) -> str:
    return next((str(most) for most in TOOK_S if seconds <= most), "+Inf")


def total(batches: Iterable[BatchFigures], before: RunFigures | None = None) -> RunFigures:
    """The sum of the figures of BATCHES, added to those BEFORE."""
    figures = before or RunFigures()
    for batch in batches:
        figures = figures.plus(batch)
    return figures


_HELP: Final = {
    "batches": ("counter", "Batches finished."),
    "rows_in": ("counter", "Records read."),
    "rows_out": ("counter", "Rows written."),
    "quarantined": ("counter", "Records put into quarantine."),
    "dropped": ("counter", "Rows left out by an expectation or as tombstones."),
    "late": ("counter", "Rows behind the watermark."),
    "warned": ("counter", "Rows that broke an expectation and passed."),
    "drifted": ("counter", "Records with fields that are not in the schema."),
    "new_fields": ("gauge", "Fields that are not in the schema, at most a hundred."),
    "lag": ("gauge", "Offsets between the last read one and the end of the topics."),
    "busy_ms": ("counter", "Time spent in batches."),
    "last_batch_ms": ("gauge", "Time that the last batch took."),
    "last_batch_at": (
        "gauge",
        "When the last batch began, in seconds since 1970; the tables are as fresh as that.",
    ),
    "rows_per_s": ("gauge", "Records read per second of batch time."),
}


def prometheus(pipeline: str, figures: RunFigures) -> str:
    """The figures in the text format of Prometheus."""
    return prometheus_of({pipeline: figures})


def prometheus_of(pipelines: Mapping[str, RunFigures]) -> str:
    """The figures of several pipelines: each metric once, with a line for each pipeline."""
    lines = []
    for name, (kind, text) in _HELP.items():
        metric = f"ixion_pipeline_{name}" + ("_total" if kind == "counter" else "")
        lines += [f"# HELP {metric} {text}", f"# TYPE {metric} {kind}"]
        for pipeline, figures in pipelines.items():
            value = figures.to_json()[name]
            value = len(value) if isinstance(value, dict) else value
            lines.append(f"{metric}{{{label('pipeline', pipeline)}}} {value}")
    return "\n".join([*lines, *_expectation_lines(pipelines), *_histogram_lines(pipelines)]) + "\n"


def _expectation_lines(pipelines: Mapping[str, RunFigures]) -> Iterator[str]:
    metric = "ixion_pipeline_expectation_broken_total"
    yield f"# HELP {metric} Rows that do not meet an expectation."
    yield f"# TYPE {metric} counter"
    for pipeline, figures in pipelines.items():
        for name, count in figures.broken.items():
            yield f"{metric}{{{label('pipeline', pipeline)},{label('expectation', name)}}} {count}"


def _histogram_lines(pipelines: Mapping[str, RunFigures]) -> Iterator[str]:
    metric = "ixion_pipeline_batch_seconds"
    yield f"# HELP {metric} Time that a batch took."
    yield f"# TYPE {metric} histogram"
    for pipeline, figures in pipelines.items():
        of, count = label("pipeline", pipeline), 0
        for most in (*map(str, TOOK_S), "+Inf"):
            count += figures.took.get(most, 0)
            yield f'{metric}_bucket{{{of},le="{most}"}} {count}'
        yield f"{metric}_sum{{{of}}} {figures.busy_ms / 1000}"
        yield f"{metric}_count{{{of}}} {count}"


def label(name: str, value: str) -> str:
    """One label of a metric, as Prometheus writes it."""
    escaped = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'{name}="{escaped}"'
