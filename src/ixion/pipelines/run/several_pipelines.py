"""Several pipelines in one Spark, each with its own thread and session, so that none sees another's views.

A pipeline that fails does not stop the others. If a retry can help, it is restarted after a pause that doubles each
time, up to LONGEST_S; a finished batch resets the pause.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Final

from pyspark.sql import SparkSession

from ixion.pipelines.batch.metrics import BatchFigures, RunFigures
from ixion.pipelines.errors import PipelineError
from ixion.pipelines.pipeline import Pipeline
from ixion.pipelines.run.progress import Progress
from ixion.pipelines.upkeep.results import Upkept

FIRST_S: Final = 1.0
LONGEST_S: Final = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    name: str
    figures: RunFigures
    error: PipelineError | None = None
    retries: int = 0


class Many:
    def __init__(
        self,
        pipelines: Sequence[Pipeline],
        spark: SparkSession,
        *,
        retries: int,
        report: Callable[[str, BatchFigures], None],
        failed: Callable[[str, PipelineError, float], None],
        warn: Callable[[str, str], None] = lambda name, text: None,  # noqa: ARG005 - nothing is said
        upkept: Callable[[str, Upkept], None] = lambda name, done: None,  # noqa: ARG005
        again: bool = False,
        new_rules: bool = False,
    ) -> None:
        """REPORT, FAILED and UPKEPT are called on threads of the pipelines, one at a time; FAILED gets the pause until
        the restart. AGAIN and NEW_RULES are those of `Pipeline.run`."""
        self._pipelines: Final = pipelines
        self._spark: Final = spark
        self._retries: Final = retries
        self._report: Final = report
        self._failed: Final = failed
        self._warn: Final = warn
        self._upkept: Final = upkept
        self._again: Final = again
        self._new_rules: Final = new_rules
        self._lock: Final = threading.Lock()
        self._stopping: Final = threading.Event()
        self._at_once = False
        self._running: Final[dict[str, Progress]] = {}

    def run(self, *, follow: bool, every_ms: int | None, at_a_time: int) -> list[Outcome]:
        """Run the pipelines: all at once if they follow, else AT_A_TIME."""
        workers = len(self._pipelines) if follow else min(at_a_time, len(self._pipelines))
        with ThreadPoolExecutor(workers, thread_name_prefix="pipeline") as pool:
            runs = [pool.submit(self._run, pipeline, follow, every_ms) for pipeline in self._pipelines]
            return [run.result() for run in runs]

    def stop(self, *, at_once: bool = False) -> None:
        """Stop all pipelines. A signal handler may call this."""
        self._stopping.set()
        self._at_once = self._at_once or at_once
        for progress in list(self._running.values()):
            progress.stop_at_once() if at_once else progress.stop()

    def _run(self, pipeline: Pipeline, follow: bool, every_ms: int | None) -> Outcome:
        name = pipeline.spec.name
        outcome = Outcome(name=name, figures=RunFigures())
        pause_s, left = FIRST_S, self._retries

        def report(batch: BatchFigures) -> None:
            nonlocal outcome, pause_s, left
            outcome = replace(outcome, figures=outcome.figures.plus(batch))
            pause_s, left = FIRST_S, self._retries
            with self._lock:
                self._report(name, batch)

        def upkept(done: Upkept) -> None:
            with self._lock:
                self._upkept(name, done)

        while not self._stopping.is_set():
            try:
                pipeline.run(
                    self._spark.newSession(),
                    follow=follow,
                    every_ms=every_ms,
                    again=self._again,
                    new_rules=self._new_rules,
                    report=report,
                    warn=lambda text: self._warn(name, text),
                    upkept=upkept,
                    started=lambda progress: self._watch(name, progress),
                )
                return outcome
            except PipelineError as error:
                if not error.retry or not left or self._stopping.is_set():
                    return replace(outcome, error=error)
                with self._lock:
                    self._failed(name, error, pause_s)
                left -= 1
                outcome = replace(outcome, retries=outcome.retries + 1)
                self._stopping.wait(pause_s)
                pause_s = min(2 * pause_s, LONGEST_S)
            finally:
                self._running.pop(name, None)
        return outcome

    def _watch(self, name: str, progress: Progress) -> None:
        """Register first, then check `stop`: a stop in between sees it."""
        self._running[name] = progress
        if self._at_once:
            progress.stop_at_once()
        elif self._stopping.is_set():
            progress.stop()
