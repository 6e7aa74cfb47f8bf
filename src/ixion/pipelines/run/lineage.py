"""OpenLineage: events that say which run of which pipeline read which topics and wrote which tables.

A run sends START at its beginning and COMPLETE, FAIL or ABORT at its end; a run that follows its topics sends RUNNING
with the figures so far, at most once a minute. Topics are inputs, with the results of the expectations; tables, target
topics and the quarantine are outputs, with their rows. Events are built here without I/O; `lineage_sending` sends them.

Spark has a listener of OpenLineage's own. It sees the jobs of Spark, of which one batch has several, and neither the
quarantine nor expectations. So pipelines send their own events.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from ixion.pipelines.checkpoint.run_records import RUNNING, RunRecord
from ixion.pipelines.spec.pipeline import PipelineSpec
from ixion.pipelines.spec.sinks import Sink, TableSink, TopicSink

PRODUCER: Final = "https://pypi.org/project/ixion"
_SPEC: Final = "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent"
_FACETS: Final = {  # name -> version, and what its schema is called
    "jobType": ("2-0-3", "JobTypeJobFacet"),
    "errorMessage": ("1-0-1", "ErrorMessageRunFacet"),
    "processing_engine": ("1-1-1", "ProcessingEngineRunFacet"),
    "schema": ("1-1-1", "SchemaDatasetFacet"),
    "inputStatistics": ("1-0-0", "InputStatisticsInputDatasetFacet"),
    "outputStatistics": ("1-0-2", "OutputStatisticsOutputDatasetFacet"),
    "dataQualityAssertions": ("1-0-1", "DataQualityAssertionsDatasetFacet"),
}
_TYPES: Final = {RUNNING: "START", "complete": "COMPLETE", "failed": "FAIL", "stopped": "ABORT"}
PAUSE_S: Final = 60.0  # between two RUNNING events
Columns = Sequence[tuple[str, str]]  # name, type


def run_event(
    spec: PipelineSpec,
    record: RunRecord,
    *,
    at: str,
    namespace: str,
    spark: str,
    columns: Columns = (),
    topics: Sequence[str] = (),
    catalogs: Mapping[str, str] | None = None,
    going_on: bool = False,
) -> dict[str, Any]:
    """The event for RECORD at the time AT. COLUMNS are those of the tables, TOPICS those that match a pattern, CATALOGS
    the addresses of Spark's catalogs by name. GOING_ON: the run has begun before."""
    kind = "RUNNING" if going_on and record.outcome == RUNNING else _TYPES[record.outcome]
    facets = {**_facet("processing_engine", name="spark", version=spark)}
    if record.error:
        facets |= _facet("errorMessage", message=record.error, programmingLanguage="python")
    return {
        "eventType": kind,
        "eventTime": at,
        "producer": PRODUCER,
        "schemaURL": _SPEC,
        "run": {"runId": record.id, "facets": facets},
        "job": {
            "namespace": namespace,
            "name": spec.name,
            "facets": _facet("jobType", processingType="STREAMING", integration="IXION", jobType="PIPELINE"),
        },
        "inputs": [_input(spec, record, topic) for topic in (spec.source.topics or topics)],
        "outputs": [
            *(_output(sink, record.figures.rows_out, columns, catalogs or {}) for sink in spec.sinks if _is_kept(sink)),
            _output(spec.quarantine, record.figures.quarantined, (), catalogs or {}),
        ],
    }


def dataset(sink: Sink, catalogs: Mapping[str, str]) -> dict[str, str]:
    """A dataset as OpenLineage names it: namespace and name."""
    if isinstance(sink, TopicSink):
        return {"namespace": _broker(sink.bootstrap), "name": sink.topic}
    assert isinstance(sink, TableSink)
    if sink.table:
        catalog, _, name = sink.table.partition(".")
        return {"namespace": catalogs.get(catalog, catalog), "name": name}
    scheme, found, rest = sink.path.partition("://")
    if not found or scheme == "file":
        return {"namespace": "file", "name": rest if found else sink.path}
    host, _, path = rest.partition("/")
    scheme = "s3" if scheme in ("s3a", "s3n") else scheme
    return {"namespace": f"{scheme}://{host}", "name": path if scheme == "s3" else f"/{path}"}


def _input(spec: PipelineSpec, record: RunRecord, topic: str) -> dict[str, Any]:
    figures = record.figures
    facets: dict[str, Any] = {}
    if record.outcome != RUNNING or figures.batches:
        if len(spec.source.topics) == 1:  # rows are counted for all topics together
            facets |= _facet("inputStatistics", rowCount=figures.rows_in)
        if spec.expectations:
            facets |= _facet("dataQualityAssertions", assertions=_assertions(spec, figures.broken))
    return {"namespace": _broker(spec.source.bootstrap), "name": topic, "inputFacets": facets}


def _assertions(spec: PipelineSpec, broken: Mapping[str, int]) -> list[dict[str, Any]]:
    return [{"assertion": one.name, "success": not broken.get(one.name, 0)} for one in spec.expectations]


def _output(sink: Sink, rows: int, columns: Columns, catalogs: Mapping[str, str]) -> dict[str, Any]:
    fields = [{"name": name, "type": kind} for name, kind in columns]
    return {
        **dataset(sink, catalogs),
        "facets": _facet("schema", fields=fields) if fields else {},
        "outputFacets": _facet("outputStatistics", rowCount=rows),
    }


def _is_kept(sink: Sink) -> bool:
    return isinstance(sink, (TableSink, TopicSink))


def _broker(bootstrap: str) -> str:
    return f"kafka://{bootstrap.partition(',')[0]}"


def _facet(name: str, /, **values: Any) -> dict[str, Any]:
    version, schema = _FACETS[name]
    url = f"https://openlineage.io/spec/facets/{version}/{schema}.json#/$defs/{schema}"
    return {name: {"_producer": PRODUCER, "_schemaURL": url, **values}}


class RunLineage:
    """Passes the events of one run to SEND. `columns` and `topics` are set when they become known."""

    def __init__(
        self,
        spec: PipelineSpec,
        send: Callable[[dict[str, Any]], None],
        *,
        namespace: str,
        spark: str,
        catalogs: Mapping[str, str],
        now: Callable[[], datetime],
    ) -> None:
        self._spec: Final = spec
        self._send: Final = send
        self._namespace: Final = namespace
        self._spark: Final = spark
        self._catalogs: Final = catalogs
        self._now: Final = now
        self._said: datetime | None = None
        self.columns: Columns = ()
        self.topics: Sequence[str] = ()

    def keep(self, record: RunRecord) -> None:
        """The run has begun, or ended."""
        self._tell(record, going_on=False)

    def go_on(self, record: RunRecord) -> None:
        """A batch is done."""
        if self._said is None or (self._now() - self._said).total_seconds() >= PAUSE_S:
            self._tell(record, going_on=True)

    def _tell(self, record: RunRecord, *, going_on: bool) -> None:
        self._said = self._now()
        event = run_event(
            self._spec,
            record,
            at=self._said.isoformat(timespec="milliseconds"),
            namespace=self._namespace,
            spark=self._spark,
            columns=self.columns,
            topics=self.topics,
            catalogs=self._catalogs,
            going_on=going_on,
        )
        self._send(event)
