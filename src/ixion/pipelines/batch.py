"""What happens to one micro-batch: rows that are wanted go through the steps to every sink, the rest into quarantine.

A batch may come twice, with the same number and the same records; every sink knows what it has (see `sinks`), so it
does not matter at which moment the first attempt ended.

Rows are counted while they pass, not by a pass of their own. With one sink the batch is computed once, and a second
time for the quarantine only if the first pass met bad records; with several sinks, or without a table among them, it is
kept from one pass to the next.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, Observation

from ixion.pipelines.expectations import counts, expect_result, warned
from ixion.pipelines.figures import BatchFigures
from ixion.pipelines.parsing import accepted, quarantined
from ixion.pipelines.sinks.base import Batch, Writer
from ixion.pipelines.spec.pipeline import Expectation

COUNT_S: Final = 5.0  # counts are there when a write is through, or some milliseconds later
Transform = Callable[[DataFrame], DataFrame]


class StopRequested(Exception):  # noqa: N818 - a request, not an error
    """Raised instead of beginning a batch when the pipeline is to stop: what was begun before is finished."""


class BatchWriter:
    """Called by Spark, on a thread of its own, for one batch after the other."""

    def __init__(
        self,
        *,
        pipeline: str,
        query: Callable[[], str],
        writers: Sequence[Writer],
        quarantine: Writer,
        steps: Transform,
        expectations: Sequence[Expectation],
        stateful: bool,
    ) -> None:
        """STEPS are applied here unless the pipeline is STATEFUL: then Spark has applied them in the stream."""
        self._pipeline: Final = pipeline
        self._query: Final = query
        self._writers: Final = writers
        self._quarantine: Final = quarantine
        self._steps: Final = steps
        self._of_records: Final = [one for one in expectations if one.on == "record" and not stateful]
        self._of_results: Final = [one for one in expectations if one.on == "result"]
        self._stateful: Final = stateful
        self.figures: Final[dict[int, BatchFigures]] = {}  # of batches written; taken out by whoever reports them
        self.error: Exception | None = None  # what ended the last batch; Spark's own report of it is a text in a text
        self.stopping: Final = threading.Event()
        self.busy: Final = threading.Event()

    def __call__(self, frame: DataFrame, number: int) -> None:
        """Busy first, then the question whether to stop; who stops asks the other way round. So one of them sees the
        other, whatever the moment, and no batch is begun unseen."""
        self.busy.set()
        try:
            if self.stopping.is_set():
                raise StopRequested
            batch = Batch(pipeline=self._pipeline, query=self._query(), number=number)
            self.figures[number] = self._write(frame, batch)
        except Exception as error:
            self.error = error
            raise
        finally:
            self.busy.clear()

    def _write(self, frame: DataFrame, batch: Batch) -> BatchFigures:
        waiting = [writer for writer in self._writers if not writer.has(batch)]
        keep = self._stateful or len(waiting) > 1 or not all(writer.is_table for writer in waiting)
        if keep:
            frame = frame.persist(StorageLevel.MEMORY_AND_DISK)
        try:
            if waiting:
                return self._write_to(waiting, frame, batch)
            self._write_quarantine(frame, batch)
            return BatchFigures(batch=batch.number, repeated=True)
        finally:
            if keep:
                frame.unpersist()

    def _write_to(self, waiting: Sequence[Writer], frame: DataFrame, batch: Batch) -> BatchFigures:
        counted, of_records = _observe(frame, counts(self._of_records))
        results, of_results = _observe(self._results(counted), counts(self._of_results))
        tables = [writer for writer in waiting if writer.is_table]
        if tables:
            tables[0].write(accepted(results), batch)
        else:  # Spark counts nothing on the way into a topic, and only some rows on the way to the terminal
            accepted(results).write.format("noop").mode("overwrite").save()
        for writer in waiting:
            if writer not in tables[:1]:
                writer.write(accepted(self._results(frame)), batch)
        before = _counted(of_records, frame, counts(self._of_records))
        after = _counted(of_results, self._results(frame), counts(self._of_results))
        if before["bad"] or after["bad"]:
            self._write_quarantine(frame, batch)
        unwanted = before["unwanted"] + after["unwanted"]
        bad = before["bad"] + after["bad"]
        return BatchFigures(
            batch=batch.number,
            rows_in=before["rows"],
            rows_out=after["rows"] - after["unwanted"],
            quarantined=bad,
            dropped=unwanted - bad,
            warned={**warned(self._of_records, before), **warned(self._of_results, after)},
        )

    def _results(self, frame: DataFrame) -> DataFrame:
        wanted = accepted(frame)
        return expect_result(wanted if self._stateful else self._steps(wanted), self._of_results)

    def _write_quarantine(self, frame: DataFrame, batch: Batch) -> None:
        if self._quarantine.has(batch):
            return
        bad = quarantined(frame)
        if self._of_results:
            bad = bad.unionByName(quarantined(self._results(frame)))
        self._quarantine.write(bad, batch)


def _observe(frame: DataFrame, columns: Mapping[str, Column]) -> tuple[DataFrame, Observation]:
    observation = Observation()
    return frame.observe(observation, *(column.alias(name) for name, column in columns.items())), observation


def _counted(observation: Observation, frame: DataFrame, columns: Mapping[str, Column]) -> dict[str, int]:
    """What was counted on the way; counted by a pass over FRAME if nothing was.

    Spark leaves out what cannot change the result (all before a `WHERE false`), also what was to be counted there, and
    would wait for it for ever.
    """
    seen: Any = observation._jo
    end = time.monotonic() + COUNT_S
    while not seen.future().isCompleted():
        if time.monotonic() > end:
            return frame.agg(*(column.alias(name) for name, column in columns.items())).collect()[0].asDict()
        time.sleep(0.01)
    return dict(observation.get)
