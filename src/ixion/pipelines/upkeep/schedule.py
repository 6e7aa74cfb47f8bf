"""The schedule of upkeep. The time of the last one is kept in the checkpoint, so the schedule outlives a run.

`Keeper` does the upkeep that is due. Beside a running pipeline, `beside` does it on a thread of its own. An error goes
to WARN and ends nothing. If the run is given up, a running upkeep is cancelled.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from datetime import datetime
from typing import Final

from pyspark.sql import SparkSession

from ixion.pipelines.checkpoint.checkpoint import Checkpoint
from ixion.pipelines.checkpoint.run_records import utc_now
from ixion.pipelines.spark.explain import explain
from ixion.pipelines.spec.sinks import TableSink
from ixion.pipelines.upkeep.results import Upkept
from ixion.pipelines.upkeep.tables import is_due, look_after, stands_aside, waits_for_batches

LOOK_S: Final = 10.0  # between two checks for due upkeep
CANCEL_S: Final = 30.0  # for Spark to cancel a job


class Keeper:
    def __init__(
        self,
        tables: Sequence[TableSink],
        pipeline: str,
        spark: SparkSession,
        checkpoint: Checkpoint,
        *,
        done: Callable[[Upkept], None] = lambda _: None,
        warn: Callable[[str], None] = lambda _: None,
        now: Callable[[], datetime] = utc_now,
    ) -> None:
        self._tables: Final = [sink for sink in tables if sink.upkeep.wanted]
        self._pipeline: Final = pipeline
        self._spark: Final = spark
        self._checkpoint: Final = checkpoint
        self._done: Final = done
        self._warn: Final = warn
        self._now: Final = now

    def look(self, *, at_once: bool = False) -> list[Upkept]:
        """Do the upkeep that is due, or all of it AT_ONCE. The caller holds the lock of the checkpoint. An error goes
        to WARN, and the other tables still have theirs."""
        wanted = [sink for sink in self._tables if at_once or self._is_due(sink)]
        return [done for sink in wanted if (done := self._try(sink, self._spark)) is not None]

    def look_beside(self, may: Callable[[], AbstractContextManager[bool]], *, at_once: bool = False) -> list[Upkept]:
        """The same from another process than the run's. MAY takes the lock of the checkpoint, unless a run holds it."""
        results = []
        for sink in self._tables:
            if not at_once and not self._is_due(sink):
                continue
            if not stands_aside(sink):
                results.append(self._look_after(sink, self._spark, beside=True))
                continue
            with may() as free:
                if free:
                    results.append(self._look_after(sink, self._spark))
                else:
                    moment = self._now().isoformat(timespec="seconds")
                    results.append(Upkept(table=sink.label, at=moment, left="the pipeline is running"))
        return results

    @contextmanager
    def beside(self, gate: threading.Lock, given_up: Callable[[], bool]) -> Iterator[None]:
        """Around a run that follows its topics. Upkeep that must wait for its batches holds GATE, and so does each
        batch."""
        if not any(sink.upkeep.every_ms is not None for sink in self._tables):
            yield
            return
        ending, group = threading.Event(), f"ixion-upkeep-{uuid.uuid4()}"
        thread = threading.Thread(target=self._by_the_clock, args=(gate, ending, group), name="pipeline-upkeep")
        thread.start()
        try:
            yield
        finally:
            ending.set()
            if given_up():
                self._spark.sparkContext.cancelJobGroup(group)
                thread.join(CANCEL_S)
            else:
                thread.join()

    def _by_the_clock(self, gate: threading.Lock, ending: threading.Event, group: str) -> None:
        session = self._spark.newSession()  # settings for upkeep must not affect the batches
        session.sparkContext.setJobGroup(group, "upkeep", interruptOnCancel=True)
        while not ending.wait(LOOK_S):
            for sink in self._tables:
                if sink.upkeep.every_ms is None or ending.is_set() or not self._is_due(sink):
                    continue
                with gate if waits_for_batches(sink) else nullcontext():
                    self._try(sink, session, ending)

    def _try(self, sink: TableSink, spark: SparkSession, ending: threading.Event | None = None) -> Upkept | None:
        """None if it failed; it is tried again when it is due the next time. If the run is ENDING, upkeep is cancelled,
        which is no error."""
        try:
            return self._look_after(sink, spark)
        except Exception as error:
            self._checkpoint.remember_upkeep(sink.label, {"at": self._now().isoformat(timespec="seconds")})
            if ending is None or not ending.is_set():
                self._warn(f"upkeep of {sink.label} failed: {explain(error)}")
            return None

    def _is_due(self, sink: TableSink) -> bool:
        last = self._checkpoint.upkeep().get(sink.label, {}).get("at")
        return is_due(sink, last, self._now())

    def _look_after(self, sink: TableSink, spark: SparkSession, *, beside: bool = False) -> Upkept:
        result = look_after(sink, self._pipeline, spark, beside=beside, now=self._now)
        if not result.left:
            self._checkpoint.remember_upkeep(sink.label, result.to_json())
            self._done(result)
        return result
