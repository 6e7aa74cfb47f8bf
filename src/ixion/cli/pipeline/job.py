"""What the `ixion pipeline` commands do: a session around a pipeline, lines on the terminal, Ctrl-C, exit codes."""

from __future__ import annotations

import json
import logging
import signal
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import FrameType, TracebackType
from typing import TYPE_CHECKING, Any, Final

from rich.console import Console

from ixion.cli.command import Exit
from ixion.cli.interrupt import exit_code
from ixion.cli.pipeline.bar import live_line
from ixion.cli.pipeline.lines import Lines
from ixion.pipelines.batch.metrics import BatchFigures, RunFigures
from ixion.pipelines.checkpoint.checkpoint import Checkpoint, is_here, open_checkpoint
from ixion.pipelines.errors import NoSparkError, PipelineError, SpecError
from ixion.pipelines.source.broker_address import need_reachable
from ixion.pipelines.spec import PipelineSpec, load_spec
from ixion.pipelines.spec.durations import parse_duration_ms

if TYPE_CHECKING:
    from ixion.pipelines.pipeline import Pipeline, Plan
    from ixion.pipelines.run.progress import Progress
    from ixion.pipelines.upkeep.results import Upkept

AGAIN: Final = 75  # the exit code of an error that a new run may not meet (EX_TEMPFAIL)


@contextmanager
def guarded(verbose: bool) -> Iterator[None]:
    """Errors as one or two lines; a stack trace only with --verbose."""
    if not verbose:  # Spark's Python side prints a traceback when it is interrupted
        logging.getLogger().addHandler(logging.NullHandler())
        warnings.simplefilter("ignore", RuntimeWarning)
    try:
        yield
    except PipelineError as error:
        if verbose:
            raise
        print(f"ixion: {error}", file=sys.stderr)
        if error.hint:
            print(error.hint, file=sys.stderr)
        if error.retry:
            print("running the command again can help", file=sys.stderr)
        raise Exit(AGAIN if error.retry else 1) from None
    except KeyboardInterrupt as error:
        print("stopped", file=sys.stderr)
        raise Exit(exit_code(error)) from None


class Job:
    """A pipeline with its Spark session, as a context manager."""

    pipeline: Pipeline
    spark: Any

    def __init__(
        self,
        file: Path,
        master: str | None,
        conf: list[str] | None,
        jars: str,
        verbose: bool,
        *,
        reach_broker: bool = True,
        make_archive: bool = False,
        is_short: Callable[[PipelineSpec], bool] = lambda _: False,
    ) -> None:
        self._file: Final = file
        self._master: Final = master
        self._conf: Final = settings_of(conf or [])
        self._jars: Final = tuple(jar for jar in jars.split(",") if jar)
        self._verbose: Final = verbose
        self._reach_broker: Final = reach_broker
        self._make_archive: Final = make_archive
        self._is_short: Final = is_short  # whether Spark will have little to do; asked once the broker answers
        self._stack: Final = ExitStack()

    def __enter__(self) -> Job:
        with Console(stderr=True).status(f"reading {self._file.name}") as live:
            spec = load_spec(self._file)
            if self._reach_broker:  # before Spark, which takes seconds to start
                live.update(f"looking for {spec.source.bootstrap}")
                need_reachable(spec.source.bootstrap, spec.source.options.get("kafka.security.protocol", "PLAINTEXT"))
            live.update("starting Spark")
            from ixion.pipelines.spark.session import opened, own_interrupts, start_spark

            starting = start_spark(
                spec,
                master=self._master,
                conf=self._conf,
                jars=self._jars,
                make_archive=self._make_archive,
                short=self._is_short(spec),
                verbose=self._verbose,
            )
            try:
                from ixion.pipelines.pipeline import Pipeline  # imports pyspark, while the JVM starts
            except ImportError:
                raise NoSparkError() from None
            self.pipeline = Pipeline(spec)
            with own_interrupts():
                self.spark = self._stack.enter_context(opened(starting))
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._stack.__exit__(kind, error, at)


def pause_ms(every: str | None) -> int | None:
    """The value of --every, in milliseconds."""
    if every is None:
        return None
    milliseconds = parse_duration_ms(every)
    if not milliseconds:
        raise SpecError(f'--every is {every!r}; write a time such as "500ms", "30s" or "10 minutes"')
    return milliseconds


def run_job(
    job: Job,
    *,
    follow: bool,
    every_ms: int | None,
    again: bool,
    new_rules: bool = False,
    as_json: bool,
    metrics_port: int | None,
) -> bool:
    """Run a pipeline. True if a second Ctrl-C stopped it at once."""
    figures = RunFigures()
    with ExitStack() as stack:
        page = None
        if metrics_port is not None:
            from ixion.cli.pipeline.metrics import serve_figures

            page = stack.enter_context(serve_figures([job.pipeline.spec.name], metrics_port))
        interrupts = stack.enter_context(_Interrupts())
        lines = stack.enter_context(Lines())

        def report(batch: BatchFigures) -> None:
            nonlocal figures
            figures = figures.plus(batch)
            lines.add(json.dumps(batch.to_json()) if as_json else batch.line())
            lines.redraw(live_line(figures, batch, follow=follow))
            if page is not None:
                page.add(job.pipeline.spec.name, batch)

        def started(progress: Progress) -> None:
            lines.redraw("waiting for the first batch")
            interrupts.watch(progress)

        def upkept(done: Upkept) -> None:
            if not as_json:
                lines.add(f"upkeep · {done.line()}")
            if page is not None:
                page.add_upkeep(job.pipeline.spec.name, done)

        job.pipeline.run(
            job.spark,
            follow=follow,
            every_ms=every_ms,
            again=again,
            new_rules=new_rules,
            report=report,
            started=started,
            stage=lines.redraw,
            warn=lambda text: print(f"ixion: {text}", file=sys.stderr),
            upkept=upkept,
        )
    if as_json:
        print(json.dumps({"summary": figures.to_json()}), flush=True)
    else:
        for line in summary_lines(job.pipeline.spec, figures):
            print(line)
    return interrupts.count > 1


class _Interrupts:
    """Ctrl-C once: finish the batch and the upkeep. Twice: stop at once."""

    def __init__(self) -> None:
        self.count = 0
        self._progress: Progress | None = None
        self._before: dict[int, Any] = {}

    def __enter__(self) -> _Interrupts:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def watch(self, progress: Progress) -> None:
        """Handle Ctrl-C for this query; before, it just ends the program. A run may have several queries in turn."""
        self._progress = progress
        for number in (signal.SIGINT, signal.SIGTERM):
            if number not in self._before:
                self._before[number] = signal.signal(number, self._interrupted)
        if self.count:
            progress.stop()

    def _interrupted(self, number: int, frame: FrameType | None) -> None:  # noqa: ARG002 - as signals are given
        self.count += 1
        assert self._progress is not None
        if self.count == 1:
            print("finishing the batch; Ctrl-C again stops at once", file=sys.stderr)
            self._progress.stop()
        elif self._progress.over:
            raise KeyboardInterrupt  # safe during upkeep: the next run finishes it
        else:
            self._progress.stop_at_once()


def plan_lines(spec: PipelineSpec, plan: Plan) -> Iterator[str]:
    yield f"pipeline    {spec.name}"
    topics = ", ".join(f"{topic} ({_many(count, 'partition')})" for topic, count in plan.topics.items())
    yield f"source      {topics} at {spec.source.bootstrap}, {plan.records:,} records there"
    shown = (spec.format.message or "") if spec.format.type == "protobuf" else plan.schema or ""
    yield f"format      {spec.format.type}" + (f": {' '.join(shown.split())}" if shown else "")
    if spec.format.inferred:
        yield "            (inferred; it is kept from the first run on)"
    for one in spec.expectations:
        yield f"expect      {one.name}: {one.check}, otherwise {one.otherwise}"
    yield f"steps       {len(spec.steps)}" + (", with memory from batch to batch" if plan.stateful else "")
    yield "columns     " + ", ".join(f"{name} {kind}" for name, kind in plan.columns)
    for sink in spec.sinks:
        by = ", ".join(getattr(sink, "partition_by", ()))
        yield f"sink        {sink.label}" + (f", by {by}" if by else "")
    for table, change in plan.changes:
        yield f"change      {table}: {change}"
    yield f"quarantine  {spec.quarantine.label}"
    yield f"checkpoint  {spec.checkpoint}"


def summary_lines(spec: PipelineSpec, figures: RunFigures) -> Iterator[str]:
    if not figures.rows_in:
        yield "nothing new in the topic"
        return
    parts = [_many(figures.batches, "batch"), f"{figures.rows_in:,} rows in", f"{figures.rows_out:,} out"]
    left_out = ("quarantined", "dropped", "late", "warned")
    parts += [f"{count:,} {name}" for name in left_out if (count := getattr(figures, name))]
    yield " · ".join([*parts, f"{figures.rows_per_s:,.0f} rows/s", f"lag {figures.lag:,}"])
    yield from _new_field_lines(figures)
    for sink in spec.sinks:
        yield f"→ {sink.label}"
    if figures.quarantined:
        yield f"→ {spec.quarantine.label} (quarantine)"


def status_lines(spec: PipelineSpec, batches: Sequence[BatchFigures], figures: RunFigures) -> Iterator[str]:
    """FIGURES are those of all batches, also of some that are no longer among BATCHES."""
    if not batches:
        yield f"pipeline {spec.name} has not run yet"
        return
    last = batches[-1]
    yield f"pipeline    {spec.name}"
    yield f"batches     {figures.batches:,}, the last one {last.batch} at {last.ended}"
    yield f"rows        {figures.rows_in:,} in, {figures.rows_out:,} out"
    yield f"left out    {figures.quarantined:,} quarantined, {figures.dropped:,} dropped, {figures.late:,} late"
    for line in _new_field_lines(figures):
        yield f"drift       {line}"
    yield f"rate        {figures.rows_per_s:,.0f} rows/s while working, {last.rows_per_s:,.0f} in the last batch"
    yield f"lag         {last.lag:,} when the last batch ended"
    for topic, partitions in last.offsets.items():
        yield f"next offset {topic}: " + ", ".join(f"{number}: {offset:,}" for number, offset in partitions.items())


def _new_field_lines(figures: RunFigures) -> Iterator[str]:
    """Fields that are not in the schema, and how they were handled."""
    for done in sorted(set(figures.new_fields.values())):
        names = [name for name, one in figures.new_fields.items() if one == done]
        records = f", in {figures.drifted:,} records" if done != "added" else ""
        yield f"fields that are not in the schema: {', '.join(names[:10])} ({done}{records})"


def history_of(file: Path, conf: list[str] | None) -> tuple[PipelineSpec, list[BatchFigures]]:
    """Spark is started only to reach a checkpoint that is not on this machine."""
    with checkpoint_of(file, conf) as (spec, checkpoint):
        return spec, checkpoint.history()


@contextmanager
def checkpoint_of(file: Path, conf: list[str] | None) -> Iterator[tuple[PipelineSpec, Checkpoint]]:
    spec = load_spec(file)
    if is_here(spec.checkpoint):
        yield spec, open_checkpoint(spec.checkpoint)
        return
    with Job(file, "local[1]", conf, "", False, reach_broker=False) as job:
        yield spec, job.pipeline.checkpoint(job.spark)


def _many(count: int, noun: str) -> str:
    plural = "es" if noun.endswith("ch") else "s"
    return f"{count:,} {noun}" + ("" if count == 1 else plural) if count else f"no {noun} yet"


def settings_of(settings: list[str]) -> dict[str, str]:
    """The settings of --conf."""
    pairs = {}
    for setting in settings:
        name, found, value = setting.partition("=")
        if not found:
            raise SpecError(f"--conf {setting}: write name=value")
        pairs[name] = value
    return pairs
