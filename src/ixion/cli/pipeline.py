"""`ixion pipeline …`: from a topic to a table. What needs Spark is imported when it is needed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(no_args_is_help=True, help="From a topic to a table, exactly once, on Spark.")

File = Annotated[Path, typer.Argument(help="The pipeline file.", show_default=False)]
Master = Annotated[str | None, typer.Option(help="A Spark cluster, such as spark://host:7077; else this machine.")]
Conf = Annotated[list[str] | None, typer.Option("--conf", help="A Spark setting, name=value; may be repeated.")]
Jars = Annotated[str, typer.Option(help="Jars to use, separated by commas, instead of looking for them.")]
Verbose = Annotated[bool, typer.Option("--verbose", help="Show what Spark says, and whole stack traces.")]
AsJson = Annotated[bool, typer.Option("--json", help="One JSON object a line.")]


@app.command()
def init(
    file: File,
    force: Annotated[bool, typer.Option("--force", help="Write over a file that is there.")] = False,
) -> None:
    """Write a commented example that runs as it is."""
    from ixion.pipelines.spec.template import template

    if file.exists() and not force:
        typer.echo(f"{file} exists; --force writes over it", err=True)
        raise typer.Exit(1)
    file.write_text(template(file.stem), "utf-8")
    typer.echo(f"wrote {file}; now: ixion pipeline check {file}")


@app.command()
def check(file: File, master: Master = None, conf: Conf = None, jars: Jars = "", verbose: Verbose = False) -> None:
    """Look at settings, topics, schema and SQL, and print what a run would do. Nothing is run."""
    from ixion.cli.pipeline_run import Job, guarded, plan_lines

    with guarded(verbose), Job(file, master, conf, jars, verbose) as job:
        for line in plan_lines(job.pipeline.spec, job.pipeline.check(job.spark)):
            typer.echo(line)


@app.command()
def run(
    file: File,
    follow: Annotated[bool, typer.Option("--follow", help="Keep going instead of stopping at the end.")] = False,
    every: Annotated[str | None, typer.Option(help='Keep going, with this time between two batches: "30s".')] = None,
    again: Annotated[bool, typer.Option("--again", help="Add to tables that an older checkpoint has filled.")] = False,
    master: Master = None,
    conf: Conf = None,
    jars: Jars = "",
    as_json: AsJson = False,
    metrics_port: Annotated[
        int | None, typer.Option(min=0, max=65535, help="Serve figures for Prometheus on this port.")
    ] = None,
    verbose: Verbose = False,
) -> None:
    """Take in what the topics hold, then stop. Ctrl-C finishes the batch; twice stops at once."""
    from ixion.cli.pipeline_run import Job, guarded, pause_ms, run_job

    with guarded(verbose):
        every_ms = pause_ms(every)
        with Job(file, master, conf, jars, verbose) as job:
            stopped = run_job(
                job,
                follow=follow or every is not None,
                every_ms=every_ms,
                again=again,
                as_json=as_json,
                metrics_port=metrics_port,
            )
    if stopped:
        raise typer.Exit(130)


@app.command()
def sample(
    file: File,
    count: Annotated[int, typer.Option(min=1, help="How many events.")] = 1000,
    master: Master = None,
    conf: Conf = None,
    jars: Jars = "",
    verbose: Verbose = False,
) -> None:
    """Send example orders to the pipeline's topic: some late, some twice, some broken."""
    from ixion.cli.pipeline_run import Job, guarded

    with guarded(verbose), Job(file, master, conf, jars, verbose) as job:
        topic = job.pipeline.send_sample(job.spark, count)
        typer.echo(f"sent {count:,} events to {topic}")


@app.command()
def status(
    file: File,
    conf: Conf = None,
    as_json: AsJson = False,
    prometheus: Annotated[bool, typer.Option("--prometheus", help="In Prometheus' text format.")] = False,
) -> None:
    """How far the pipeline has come: rows in, out and quarantined, lag, rates."""
    from ixion.cli.pipeline_run import guarded, history_of, status_lines
    from ixion.pipelines.figures import prometheus as prometheus_text
    from ixion.pipelines.figures import total

    with guarded(False):
        spec, batches = history_of(file, conf)
        if prometheus:
            typer.echo(prometheus_text(spec.name, total(batches)), nl=False)
        elif as_json:
            typer.echo(json.dumps({"pipeline": spec.name, **total(batches).to_json()}))
        else:
            for line in status_lines(spec, batches):
                typer.echo(line)


@app.command()
def history(
    file: File,
    last: Annotated[int, typer.Option(min=1, help="How many batches.")] = 20,
    conf: Conf = None,
    as_json: AsJson = False,
) -> None:
    """The last batches, one a line."""
    from ixion.cli.pipeline_run import guarded, history_of

    with guarded(False):
        _, batches = history_of(file, conf)
        for batch in batches[-last:]:
            typer.echo(json.dumps(batch.to_json()) if as_json else f"{batch.ended}  {batch.line()}")
        if not batches and not as_json:
            typer.echo("no batch yet")
