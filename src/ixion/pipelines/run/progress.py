"""Follows a running query: collects the figures of each finished batch, and stops the query on request."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any, Final

from pyspark.errors import StreamingQueryException
from pyspark.sql.streaming.query import StreamingQuery

from ixion.pipelines.batch.expectations import broken, drifted, warned
from ixion.pipelines.batch.metrics import BatchFigures, Offsets
from ixion.pipelines.batch.plan import METRICS
from ixion.pipelines.batch.write import BatchWriter, StopRequested
from ixion.pipelines.source.read import offsets_behind
from ixion.pipelines.spec.pipeline import Expectation

POLL_S: Final = 0.2
SET_BACK_S: Final = 5.0  # a smaller step of the clock is waited for


class Progress:
    def __init__(
        self,
        query: StreamingQuery,
        writer: BatchWriter,
        expectations: list[Expectation],
        ends: Offsets,
        *,
        wall: Callable[[], float] = lambda: time.time() - time.monotonic(),
    ) -> None:
        """ENDS are the end offsets of the topics when the run began: Spark does not report them for a repeated batch.
        WALL is the wall clock less the time that has passed."""
        self._query: Final = query
        self._writer: Final = writer
        self._expectations: Final = expectations
        self._ends: Final = ends
        self._wall: Final = wall
        self._at_once: Final = threading.Event()
        self._asked = False  # to stop
        self._set_back = False
        self._last = -1
        self.over = False  # no more batches; upkeep may still run

    def follow(self) -> Iterator[BatchFigures]:
        """Each batch when it is done, until the query ends; raises its error at the end."""
        ended, latest = False, self._wall()
        while not ended:
            ended = self._ended()
            yield from self._new_batches()
            latest = max(latest, self._wall())
            if latest - self._wall() > SET_BACK_S:
                self._set_back = True
                self._writer.stopping.set()
            if self._at_once.is_set() or (self._writer.stopping.is_set() and self._idle()):
                self._query.stop()
        self.over = True

    @property
    def given_up(self) -> bool:
        """Whether a batch may have been left half done."""
        return self._at_once.is_set()

    @property
    def stopped(self) -> bool:
        """Whether the caller has asked for an end."""
        return self._asked

    @property
    def set_back(self) -> bool:
        """Whether the query was ended because the wall clock was set back. Spark waits for the time of day of the next
        batch, so it would do nothing for as long as the clock was set back."""
        return self._set_back and not self._asked

    def stop(self) -> None:
        """Finish the running batch; begin no more."""
        self._asked = True
        self._writer.stopping.set()

    def stop_at_once(self) -> None:
        """Abandon the running batch; the next run repeats it. A signal handler may call this: the thread in `follow`
        stops the query, because a call to the JVM must not be interrupted by another one."""
        self._asked = True
        self._at_once.set()
        self._writer.stopping.set()

    def _ended(self) -> bool:
        try:
            wait: Any = self._query.awaitTermination  # accepts fractions of a second, although its type hints do not
            return bool(wait(POLL_S))
        except StreamingQueryException as error:
            if isinstance(self._writer.error, StopRequested) or self._at_once.is_set():
                return True
            if self._writer.error is not None:
                raise self._writer.error from error
            raise

    def _idle(self) -> bool:
        """Whether no batch is being written, and Spark has noted every written batch in its checkpoint, which takes
        some milliseconds more. Call this after `stopping` was set: then no batch begins any more."""
        if self._writer.busy.is_set():
            return False
        return not self._writer.figures or not self._query.isActive

    def _new_batches(self) -> Iterator[BatchFigures]:
        """Ask Spark only if a batch was written: it returns all its last reports, in hundreds of small calls."""
        if not self._writer.figures:
            return
        for report in self._query.recentProgress:
            number = int(report["batchId"])
            if number <= self._last or number not in self._writer.figures:
                continue  # a report without a batch: nothing had come
            self._last = number
            yield self._join(self._writer.figures.pop(number), report)

    def _join(self, figures: BatchFigures, report: Any) -> BatchFigures:
        """The counts of the batch, with Spark's figures of its time, offsets and state."""
        seen = (report["observedMetrics"] or {}).get(METRICS)
        if seen is not None:
            counted = seen.asDict() if hasattr(seen, "asDict") else dict(seen)
            figures = replace(
                figures,
                rows_in=counted["rows"],
                warned={**figures.warned, **warned(self._expectations, counted)},
                broken={**figures.broken, **broken(self._expectations, counted)},
                **drifted(counted),
            )
        duration_ms = int(report["durationMs"].get("triggerExecution", 0))
        source = report["sources"][0]
        reached = _offsets(source["endOffset"])
        return replace(
            figures,
            ended=report["timestamp"],
            duration_ms=duration_ms,
            rows_per_s=round(figures.rows_in / (duration_ms / 1000), 1) if duration_ms else 0.0,
            late=sum(int(state["numRowsDroppedByWatermark"]) for state in report["stateOperators"]),
            offsets=reached,
            lag=offsets_behind(_offsets(source["latestOffset"]) or self._ends, reached),
        )


def _offsets(value: Any) -> Offsets:
    """Offsets, which Spark returns as JSON text or decoded; it does not look up the end for a repeated batch."""
    if isinstance(value, str):
        value = json.loads(value) if value.startswith("{") else {}
    return value or {}
