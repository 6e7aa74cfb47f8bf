"""Writes one micro-batch: good rows go through the steps to every sink, bad records into quarantine.

A batch may come twice, with the same number and the same records. Every sink knows what it has (see `sinks`), so it
does not matter when the first attempt ended.

Each row is judged once. With one sink the batch is computed once; bad records are collected meanwhile (see
`bad_records`), and only if they are too many is there a second pass for the quarantine. With several sinks, or without
a table among them, rows are kept between the passes. Rows that two passes might see differently are kept in the
checkpoint (see `stable_rows`). Rows are counted while they pass, without a pass of their own. The table and the
quarantine must have what was counted, or the batch fails.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from typing import Any, Final

from pyspark import StorageLevel
from pyspark.sql import Column, DataFrame, Observation
from pyspark.sql import functions as F

from ixion.pipelines.batch.bad_records import collect, collected_rows
from ixion.pipelines.batch.expectations import broken, counts, drifted, expect_result, warned
from ixion.pipelines.batch.metrics import BatchFigures
from ixion.pipelines.batch.plan import Stream
from ixion.pipelines.batch.small_batches import FEW, SmallBatches
from ixion.pipelines.batch.stable_rows import StableRows, can_be_kept
from ixion.pipelines.errors import PipelineError
from ixion.pipelines.formats.added_columns import HIDDEN
from ixion.pipelines.formats.parse import accepted, quarantined
from ixion.pipelines.sinks.base import Batch, Writer
from ixion.pipelines.spark.observed import observed
from ixion.pipelines.spec.pipeline import Expectation

COUNT_S: Final = 5.0  # counts are complete when a write ends, or some milliseconds later
Transform = Callable[[DataFrame], DataFrame]


class StopRequested(Exception):  # noqa: N818 - a request, not an error
    """Raised instead of beginning a batch when the pipeline must stop; a batch that was begun before is finished."""


class BatchWriter:
    """Called by Spark, on a thread of its own, for one batch after the other."""

    def __init__(
        self,
        *,
        identify: Callable[[int], Batch],
        writers: Sequence[Writer],
        quarantine: Writer,
        steps: Transform | None,
        expectations: Sequence[Expectation],
        stream: Stream,
        kept: StableRows,
        guard: Callable[[int], None] = lambda _: None,
        size: Callable[[int], int] = lambda _: FEW,
        last: int | None = None,
        gate: AbstractContextManager[object] | None = None,
        known: Callable[[int], bool] = lambda _: True,
        done: Callable[[BatchFigures], None] = lambda _: None,
    ) -> None:
        """STEPS are applied here unless the STREAM has memory: then Spark has applied them in it.

        GUARD is called with the number of a batch before and after it is written; it raises if the topics were replaced
        by others of the same names. SIZE gives the records of a batch, or more: holes count. No batch after LAST is
        begun. A batch is written while GATE is held. IDENTIFY makes the batch of a number. DONE gets the figures of a
        batch once it is written, before Spark notes it as done; KNOWN says whether it got them in an earlier attempt.
        """
        self._identify: Final = identify
        self._writers: Final = writers
        self._quarantine: Final = quarantine
        self._steps: Final = steps
        self._of_records: Final = [one for one in expectations if one.on == "record" and not stream.stateful]
        self._of_results: Final = [one for one in expectations if one.on == "result"]
        self._stream: Final = stream
        self._kept: Final = kept
        self._guard: Final = guard
        self._size: Final = size
        self._small: Final = SmallBatches()
        self._last: Final = last
        self._gate: Final = gate or nullcontext()
        self._known: Final = known
        self._done: Final = done
        # A topic or the terminal alone needs a pass that counts; result rows for the quarantine need one more.
        passes = len(writers) + (not any(writer.is_table for writer in writers)) + bool(self._of_results)
        self._keeps_results: Final = stream.results_may_change and passes > 1
        self.figures: Final[dict[int, BatchFigures]] = {}  # of written batches; `Progress` removes them
        self.error: Exception | None = None  # the error of the last batch; Spark reports it only as nested text
        self.stopping: Final = threading.Event()
        self.busy: Final = threading.Event()

    def __call__(self, frame: DataFrame, number: int) -> None:
        """Sets `busy`, then checks `stopping`; `Progress` sets `stopping`, then checks `busy`. So one of the two always
        sees the other, and no batch begins unnoticed."""
        self.busy.set()
        try:
            if self.stopping.is_set() or (self._last is not None and number > self._last):
                raise StopRequested
            batch = self._identify(number)
            self._guard(number)
            self._small.prepare(frame.sparkSession, self._size(number))
            with self._gate:
                figures = self._write(frame, batch)
            self._guard(number)
            self._done(figures)
            self.figures[number] = figures
        except Exception as error:
            self.error = error
            raise
        finally:
            self.busy.clear()

    def _write(self, frame: DataFrame, batch: Batch) -> BatchFigures:
        waiting = [writer for writer in self._writers if not writer.has(batch)]
        with ExitStack() as stack:
            frame = self._records(self._stream.judge(frame) if self._stream.judge else frame, batch, stack)
            if not waiting and self._known(batch.number) and self._quarantine.has(batch):
                return BatchFigures(batch=batch.number, repeated=True)
            counted, of_records = self._count(frame)
            results, of_results = self._results(counted)
            rows = self._result_rows(results, batch, len(waiting), stack)
            if waiting:
                _write_rows(waiting, accepted(rows) if self._of_results else rows, batch)
            else:
                if not self._quarantine.has(batch):
                    self._quarantine.write(self._bad(frame, rows), batch)
                if self._known(batch.number):
                    return BatchFigures(batch=batch.number, repeated=True)
                _pass(rows)  # the run that wrote it was killed before its figures were stored
            before = {"unwanted": 0, "bad": 0, **_counted(of_records, frame, self._of_frame(frame))}
            after = {"rows": before["rows"] - before["unwanted"], "unwanted": 0, "bad": 0}
            if of_results is not None:
                after |= _counted(of_results, rows, self._of_rows(rows))
            if waiting and (before["bad"] or after["bad"]):
                bad = self._bad(frame, rows)
                aside = collected_rows((before, after), bad)
                self._write_quarantine(bad if aside is None else aside, before["bad"] + after["bad"], batch)
        unwanted = before["unwanted"] + after["unwanted"]
        quarantined_rows = before["bad"] + after["bad"]
        return BatchFigures(
            batch=batch.number,
            repeated=not waiting,
            rows_in=before["rows"],
            rows_out=after["rows"] - after["unwanted"],
            quarantined=quarantined_rows,
            dropped=unwanted - quarantined_rows,
            warned={**warned(self._of_records, before), **warned(self._of_results, after)},
            broken={**broken(self._of_records, before), **broken(self._of_results, after)},
            **drifted(before),
        )

    def _records(self, frame: DataFrame, batch: Batch, stack: ExitStack) -> DataFrame:
        """With memory, computing FRAME also advances Spark's state, so it is done once per attempt."""
        if self._stream.stateful:
            frame.persist(StorageLevel.MEMORY_AND_DISK)
            stack.callback(frame.unpersist)
            frame.write.format("noop").mode("overwrite").save()
        elif self._stream.records_may_change:
            self._kept.forget(but=batch.number)
            frame = self._kept.once(frame, batch.number, "records")
        return frame

    def _of_frame(self, frame: DataFrame) -> dict[str, Column]:
        """The counts of the records."""
        return _number() if self._stream.all_wanted else counts(self._of_records, frame)

    def _count(self, frame: DataFrame) -> tuple[DataFrame, Observation]:
        """FRAME with its rows counted as they pass, and the first bad ones collected. If there is nothing to judge, the
        columns for it are not computed."""
        if self._stream.all_wanted:
            return _observe(frame.drop(*HIDDEN), _number())
        return _observe(frame, {**counts(self._of_records, frame), **collect(frame)})

    def _results(self, frame: DataFrame) -> tuple[DataFrame, Observation | None]:
        """The rows for the sinks; counted, unless they are exactly the good records."""
        wanted = frame if self._stream.all_wanted else accepted(frame)
        if self._steps is not None and not self._stream.stateful:
            wanted = self._steps(wanted)
        elif not self._of_results:
            return wanted, None
        if not self._of_results:
            return _observe(wanted, self._of_rows(wanted))
        results = expect_result(wanted, self._of_results)
        return _observe(results, {**self._of_rows(results), **collect(results)})

    def _of_rows(self, rows: DataFrame) -> dict[str, Column]:
        """The counts of the rows after the steps."""
        return counts(self._of_results, rows) if self._of_results else _number()

    def _bad(self, frame: DataFrame, rows: DataFrame) -> DataFrame:
        bad = quarantined(frame)
        return bad.unionByName(quarantined(rows)) if self._of_results else bad

    def _result_rows(self, results: DataFrame, batch: Batch, waiting: int, stack: ExitStack) -> DataFrame:
        if self._keeps_results and not self._stream.stateful and can_be_kept(results):
            self._kept.forget(but=batch.number)
            return self._kept.once(results, batch.number, "results")
        if self._keeps_results or waiting > 1 or not all(writer.is_table for writer in self._writers):
            results.persist(StorageLevel.MEMORY_AND_DISK)
            stack.callback(results.unpersist)
        return results

    def _write_quarantine(self, bad: DataFrame, expected: int, batch: Batch) -> None:
        if self._quarantine.has(batch):
            return
        seen, observation = _observe(bad, _number())
        self._quarantine.write(seen, batch)
        there = _counted(observation, bad, _number())["rows"]
        if there != expected:
            message = f"batch {batch.number} does not add up: {expected:,} records are bad, {there:,} are in quarantine"
            hint = "does an expectation depend on something that changed meanwhile, or were records deleted meanwhile?"
            raise PipelineError(message, hint=hint)


def _write_rows(waiting: Sequence[Writer], rows: DataFrame, batch: Batch) -> None:
    """Write tables first: that passes every row, and so counts them."""
    tables = [writer for writer in waiting if writer.is_table]
    if not tables:  # Spark counts no rows written to a topic, and only some rows shown on the terminal
        _pass(rows)
    for writer in (*tables, *(writer for writer in waiting if not writer.is_table)):
        writer.write(rows, batch)


def _pass(rows: DataFrame) -> None:
    """Compute ROWS, so that they are counted."""
    rows.write.format("noop").mode("overwrite").save()


def _number() -> dict[str, Column]:
    """How many rows there are, and nothing else."""
    return {"rows": F.count(F.lit(1))}


def _observe(frame: DataFrame, columns: Mapping[str, Column]) -> tuple[DataFrame, Observation]:
    observation = Observation()
    return frame.observe(observation, *(column.alias(name) for name, column in columns.items())), observation


def _counted(observation: Observation, frame: DataFrame, columns: Mapping[str, Column]) -> dict[str, Any]:
    """What was counted on the way; counted by a pass over FRAME if Spark counted nothing.

    Spark skips what cannot change the result (everything before a `WHERE false`), with the counts there, and would wait
    for them for ever.
    """
    seen: Any = observation._jo
    end = time.monotonic() + COUNT_S
    while not seen.future().isCompleted():
        if time.monotonic() > end:
            return frame.agg(*(column.alias(name) for name, column in columns.items())).collect()[0].asDict()
        time.sleep(0.01)
    return observed(observation)
