"""`ixion pipeline run FOLDER`: all pipelines of a folder in one Spark."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING

from rich.console import Console

from ixion.cli.command import Exit
from ixion.cli.pipeline.job import AGAIN, settings_of
from ixion.cli.pipeline.lines import Lines
from ixion.pipelines.batch.metrics import BatchFigures
from ixion.pipelines.errors import NoSparkError, PipelineError
from ixion.pipelines.source.broker_address import need_reachable
from ixion.pipelines.spec.folder import load_folder

if TYPE_CHECKING:
    from ixion.pipelines.run.several_pipelines import Many, Outcome
    from ixion.pipelines.upkeep.results import Upkept


def run_folder(
    folder: Path,
    *,
    follow: bool,
    every_ms: int | None,
    again: bool,
    new_rules: bool,
    retries: int,
    at_a_time: int,
    master: str | None,
    conf: list[str],
    jars: str,
    as_json: bool,
    metrics_port: int | None,
    verbose: bool,
) -> None:
    specs = load_folder(folder)
    for spec in specs:
        need_reachable(spec.source.bootstrap, spec.source.options.get("kafka.security.protocol", "PLAINTEXT"))
    try:
        from ixion.pipelines.pipeline import Pipeline
        from ixion.pipelines.run.several_pipelines import Many
        from ixion.pipelines.spark.session import close_session, open_session, own_interrupts
    except ImportError:
        raise NoSparkError() from None
    with ExitStack() as stack:
        with Console(stderr=True).status("starting Spark"), own_interrupts():
            spark = open_session(
                f"ixion pipelines {folder.name}",
                formats={name for spec in specs for name in (*spec.formats(), spec.format.type)},
                master=master or next((spec.spark.master for spec in specs if spec.spark.master), None),
                conf={
                    **{name: value for spec in specs for name, value in spec.spark.conf.items()},
                    **settings_of(conf),
                },
                jars=(*(jar for jar in jars.split(",") if jar), *(jar for spec in specs for jar in spec.spark.jars)),
                connector=any(spec.needs_connector() for spec in specs),
                verbose=verbose,
            )
        stack.callback(close_session, spark)
        page = None
        if metrics_port is not None:
            from ixion.cli.pipeline.metrics import serve_figures

            page = stack.enter_context(serve_figures([spec.name for spec in specs], metrics_port))
        lines = stack.enter_context(Lines())

        def report(name: str, batch: BatchFigures) -> None:
            values = {"pipeline": name, **batch.to_json()}
            lines.add(json.dumps(values) if as_json else f"{name} · {batch.line()}")
            if page is not None:
                page.add(name, batch)

        def failed(name: str, error: PipelineError, pause_s: float) -> None:
            print(f"ixion: {name}: {error}; restarting it in {pause_s:.0f} s", file=sys.stderr)

        def warn(name: str, text: str) -> None:
            print(f"ixion: {name}: {text}", file=sys.stderr)

        def upkept(name: str, done: Upkept) -> None:
            if not as_json:
                lines.add(f"{name} · upkeep · {done.line()}")
            if page is not None:
                page.add_upkeep(name, done)

        many = Many(
            [Pipeline(spec) for spec in specs],
            spark,
            retries=retries,
            report=report,
            failed=failed,
            warn=warn,
            upkept=upkept,
            again=again,
            new_rules=new_rules,
        )
        with _interrupts(many):
            outcomes = many.run(follow=follow, every_ms=every_ms, at_a_time=at_a_time)
    _conclude(outcomes, as_json)


@contextmanager
def _interrupts(many: Many) -> Iterator[None]:
    """Ctrl-C once: every pipeline finishes its batch. Twice: they stop at once."""
    count = 0

    def interrupted(number: int, frame: FrameType | None) -> None:  # noqa: ARG001 - as signals are given
        nonlocal count
        count += 1
        if count == 1:
            print("finishing the batches; Ctrl-C again stops at once", file=sys.stderr)
        many.stop(at_once=count > 1)

    before = {number: signal.signal(number, interrupted) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    if count > 1:
        raise KeyboardInterrupt


def _conclude(outcomes: list[Outcome], as_json: bool) -> None:
    """One line per pipeline; the exit code is that of the worst."""
    for one in outcomes:
        if as_json:
            error = str(one.error) if one.error else None
            summary = {**one.figures.to_json(), "retries": one.retries, "error": error}
            print(json.dumps({"pipeline": one.name, "summary": summary}), flush=True)
            continue
        figures = one.figures
        print(
            f"{one.name}: {figures.rows_in:,} rows in · {figures.rows_out:,} out · {figures.quarantined:,} quarantined"
        )
        if one.error is not None:
            print(f"ixion: {one.name}: {one.error}", file=sys.stderr)
            if one.error.hint:
                print(one.error.hint, file=sys.stderr)
    errors = [one.error for one in outcomes if one.error is not None]
    if errors:
        raise Exit(AGAIN if all(error.retry for error in errors) else 1)
