"""`ixion pipeline …`: from a topic to a table. What needs Spark is imported when it is needed."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Final

from ixion.cli.command import Argument, Command, Exit, Group, Option, whole


def init(file: Path, force: bool) -> None:
    from ixion.pipelines.spec.template import template

    if file.exists() and not force:
        print(f"ixion: {file} exists; --force overwrites it", file=sys.stderr)
        raise Exit(1)
    file.write_text(template(file.stem), "utf-8")
    print(f"wrote {file}; now: ixion pipeline check {file}")


def check(file: Path, against: str | None, master: str | None, conf: list[str], jars: str, verbose: bool) -> None:
    from ixion.cli.pipeline.job import Job, guarded, plan_lines

    with guarded(verbose), Job(file, master, conf, jars, verbose, is_short=lambda _: True) as job:
        plan = job.pipeline.check(job.spark, against=against)
        for line in plan_lines(job.pipeline.spec, plan):
            print(line)
        if against and not plan.changes:
            print(f"change      {against}: nothing, the rows fit")


def run(
    file: Path,
    follow: bool,
    every: str | None,
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
    from ixion.cli.pipeline.amount import has_few
    from ixion.cli.pipeline.job import Job, guarded, pause_ms, run_job

    with guarded(verbose):
        every_ms = pause_ms(every)
        if file.is_dir():
            from ixion.cli.pipeline.folder import run_folder

            run_folder(
                file,
                follow=follow or every is not None,
                every_ms=every_ms,
                again=again,
                new_rules=new_rules,
                retries=retries,
                at_a_time=at_a_time,
                master=master,
                conf=conf,
                jars=jars,
                as_json=as_json,
                metrics_port=metrics_port,
                verbose=verbose,
            )
            return
        follows = follow or every is not None
        short = (lambda _: False) if follows else has_few
        with Job(file, master, conf, jars, verbose, make_archive=True, is_short=short) as job:
            stopped = run_job(
                job,
                follow=follows,
                every_ms=every_ms,
                again=again,
                new_rules=new_rules,
                as_json=as_json,
                metrics_port=metrics_port,
            )
    if stopped:
        raise Exit(130)


def replay(
    file: Path,
    where: str | None,
    dry: bool,
    even_deleted: bool,
    master: str | None,
    conf: list[str],
    jars: str,
    as_json: bool,
    verbose: bool,
) -> None:
    from ixion.cli.pipeline.again import replayed_lines
    from ixion.cli.pipeline.job import Job, guarded

    with guarded(verbose), Job(file, master, conf, jars, verbose) as job:
        done = job.pipeline.replay(job.spark, where=where, dry=dry, even_deleted=even_deleted)
        for line in replayed_lines(done, dry=dry, as_json=as_json):
            print(line)


def backfill(
    file: Path,
    first: str,
    end: str,
    missing: bool,
    dry: bool,
    even_deleted: bool,
    master: str | None,
    conf: list[str],
    jars: str,
    as_json: bool,
    verbose: bool,
) -> None:
    from ixion.cli.pipeline.again import backfilled_lines, place_of
    from ixion.cli.pipeline.job import Job, guarded

    with guarded(verbose):
        places = place_of(first, "--from"), place_of(end, "--to")
        with Job(file, master, conf, jars, verbose) as job:
            if missing:
                done = job.pipeline.mend(job.spark, dry=dry)
            else:
                done = job.pipeline.backfill(job.spark, *places, dry=dry, even_deleted=even_deleted)
            for line in backfilled_lines(done, dry=dry, as_json=as_json):
                print(line)


def doctor(file: Path, master: str | None, conf: list[str], jars: str, as_json: bool, verbose: bool) -> None:
    from ixion.cli.pipeline.doctor import show_diagnosis
    from ixion.cli.pipeline.job import Job, guarded

    with guarded(verbose), Job(file, master, conf, jars, verbose) as job:
        found = job.pipeline.examine(job.spark)
        show_diagnosis(found, as_json=as_json)
    if not all(finding.harmless for finding in found.findings):
        raise Exit(1)


def export(file: Path, folder: Path | None, verbose: bool) -> None:
    from ixion.cli.pipeline.export import write_project
    from ixion.cli.pipeline.job import guarded

    with guarded(verbose):
        for line in write_project(file, folder):
            print(line)


def sample(file: Path, count: int, master: str | None, conf: list[str], jars: str, verbose: bool) -> None:
    from ixion.cli.pipeline.job import Job, guarded
    from ixion.cli.pipeline.sample import send_sample

    with guarded(verbose):
        topic = send_sample(file, count)
        if topic is None:
            with Job(file, master, conf, jars, verbose) as job:
                topic = job.pipeline.send_sample(job.spark, count)
        print(f"sent {count:,} events to {topic}")


def warm(file: Path, conf: list[str], jars: str, verbose: bool) -> None:
    from ixion.cli.pipeline.job import guarded
    from ixion.cli.pipeline.warm import warm_up

    with guarded(verbose):
        print(warm_up(file, conf, jars, verbose))


def status(file: Path, conf: list[str], as_json: bool, prometheus: bool) -> None:
    from ixion.cli.pipeline.job import checkpoint_of, guarded, status_lines
    from ixion.pipelines.batch.metrics import prometheus as prometheus_text
    from ixion.pipelines.upkeep.results import upkeep_lines

    with guarded(False):
        with checkpoint_of(file, conf) as (spec, checkpoint):
            batches, figures, saved = checkpoint.history(), checkpoint.totals(), checkpoint.upkeep_totals()
        if prometheus:
            print(prometheus_text(spec.name, figures), end="")
            print("".join(upkeep_lines({spec.name: saved})), end="")
        elif as_json:
            print(json.dumps({"pipeline": spec.name, **figures.to_json()}))
        else:
            for line in status_lines(spec, batches, figures):
                print(line)


def history(file: Path, last: int, conf: list[str], as_json: bool) -> None:
    from ixion.cli.pipeline.job import guarded, history_of

    with guarded(False):
        _, batches = history_of(file, conf)
        for batch in batches[-last:]:
            print(json.dumps(batch.to_json()) if as_json else f"{batch.ended}  {batch.line()}")
        if not batches and not as_json:
            print("no batch yet")


def upkeep(
    file: Path, every: str | None, master: str | None, conf: list[str], jars: str, as_json: bool, verbose: bool
) -> None:
    from ixion.cli.pipeline.job import Job, guarded, pause_ms
    from ixion.cli.pipeline.upkeep import by_the_clock, upkept_line

    with guarded(verbose):
        pause = pause_ms(every)
        with Job(file, master, conf, jars, verbose, reach_broker=False) as job:
            if pause is not None:
                by_the_clock(job.pipeline, job.spark, pause, as_json=as_json)
                return
            for result in job.pipeline.upkeep(job.spark):
                print(upkept_line(result, as_json))


def report(file: Path, run: str, page: Path | None, every: bool, conf: list[str], as_json: bool) -> None:
    from ixion.cli.pipeline.job import checkpoint_of, guarded
    from ixion.cli.pipeline.report import chosen, run_lines, said

    with guarded(False), checkpoint_of(file, conf) as (spec, checkpoint):
        if every:
            lines = (
                (json.dumps(one.to_json()) for one in checkpoint.runs()) if as_json else run_lines(checkpoint.runs())
            )
        else:
            record, batches = chosen(spec, checkpoint, run)
            lines = said(spec, record, batches, page=page, as_json=as_json)
        for line in lines:
            print(line)


FILE: Final = Argument("file", "FILE", "The pipeline file.", kind=Path, complete="file")
MASTER: Final = Option(
    "master", "--master", "A Spark cluster, such as spark://host:7077 (default: this machine).", metavar="URL"
)
CONF: Final = Option("conf", "--conf", "A Spark setting; may be repeated.", metavar="NAME=VALUE", many=True)
JARS: Final = Option(
    "jars", "--jars", "Jars to use, separated by commas (default: find them).", metavar="FILES", default=""
)
VERBOSE: Final = Option("verbose", "--verbose", "Show Spark's log, and whole stack traces.")
AS_JSON: Final = Option("as_json", "--json", "One JSON object a line, for programs.")
EVEN_DELETED: Final = Option("even_deleted", "--even-deleted", "Write rows even if they may have been deleted since.")
SPARK: Final = (MASTER, CONF, JARS, VERBOSE)

PIPELINE: Final = Group(
    "pipeline",
    "From a topic to a table, exactly once, on Spark.",
    Command(
        "init",
        "Write a commented example that can be run.",
        init,
        arguments=(FILE,),
        options=(Option("force", "--force", "Overwrite an existing file."),),
    ),
    Command(
        "check",
        "Check settings, topics, schema and SQL, and print what a run would do, without running it.",
        check,
        arguments=(FILE,),
        options=(
            Option(
                "against",
                "--against",
                "Print the changes that this table (a path, or a name in a catalog) needs to take the rows.",
                metavar="TABLE",
            ),
            *SPARK,
        ),
    ),
    Command(
        "run",
        "Process the records of the topics, then stop. Ctrl-C finishes the batch; twice stops at once.",
        run,
        arguments=(Argument("file", "FILE", "The pipeline file, or a folder of them.", kind=Path, complete="file"),),
        options=(
            Option("follow", "--follow", "Keep going instead of stopping at the end."),
            Option("every", "--every", 'Keep going, with this interval between batches: "30s".', metavar="TIME"),
            Option("again", "--again", "Go on although tables and checkpoint disagree: add to what is there."),
            Option("new_rules", "--new-rules", "Finish a half-written batch by the file as it is now."),
            Option(
                "retries",
                "--retries",
                "For a folder: restart a failed pipeline up to N times, after growing pauses, if that can help.",
                metavar="N",
                kind=whole(0),
                default=5,
            ),
            Option(
                "at_a_time",
                "--at-a-time",
                "For a folder: pipelines to run at the same time, unless they keep going.",
                metavar="N",
                kind=whole(1),
                default=2,
            ),
            AS_JSON,
            Option(
                "metrics_port",
                "--metrics-port",
                "Serve metrics for Prometheus on this port.",
                metavar="N",
                kind=whole(0, 65535),
            ),
            *SPARK,
        ),
    ),
    Command(
        "replay",
        "Process quarantined records again: those that now pass go into the tables and leave quarantine.",
        replay,
        arguments=(FILE,),
        options=(
            Option("where", "--where", "Only these records, by SQL: \"reason LIKE '%JSON%'\".", metavar="SQL"),
            Option("dry", "--dry-run", "Show how many would pass, without changing anything."),
            EVEN_DELETED,
            AS_JSON,
            *SPARK,
        ),
    ),
    Command(
        "backfill",
        "Process older records that the pipeline has not read, into the same tables, each once.",
        backfill,
        arguments=(FILE,),
        options=(
            Option(
                "first",
                "--from",
                "The first record: a time such as 2026-01-31T08:00:00Z, or earliest.",
                metavar="TIME",
                default="earliest",
            ),
            Option(
                "end",
                "--to",
                "Stop before this time (default: where the pipeline has read from).",
                metavar="TIME",
                default="latest",
            ),
            Option(
                "missing",
                "--missing",
                "Read again what a table has lost, because it was deleted or restored from a backup.",
            ),
            Option("dry", "--dry-run", "Show what is left to be read, without reading it."),
            EVEN_DELETED,
            AS_JSON,
            *SPARK,
        ),
    ),
    Command(
        "doctor",
        "Compare topics, checkpoint and tables, offset by offset, and say what mends a difference.",
        doctor,
        arguments=(FILE,),
        options=(AS_JSON, *SPARK),
    ),
    Command(
        "upkeep",
        "Compact tables and remove old versions now. A run may be active.",
        upkeep,
        arguments=(FILE,),
        options=(
            Option("every", "--every", 'Keep going, and check at this interval what is due: "10m".', metavar="TIME"),
            AS_JSON,
            *SPARK,
        ),
    ),
    Command(
        "export",
        "Write the pipeline as a project of Spark Declarative Pipelines (Spark 4.1 and newer).",
        export,
        arguments=(FILE,),
        options=(
            Option("folder", "--sdp", "The folder of the project; new or empty.", metavar="FOLDER", kind=Path),
            VERBOSE,
        ),
    ),
    Command(
        "sample",
        "Send example orders to the pipeline's topic: some late, some duplicate, some broken.",
        sample,
        arguments=(FILE,),
        options=(Option("count", "--count", "Events to send.", metavar="N", kind=whole(1), default=1000), *SPARK),
    ),
    Command(
        "warm",
        "Create a class archive for Spark, so that this pipeline starts sooner.",
        warm,
        arguments=(FILE,),
        options=(CONF, JARS, VERBOSE),
    ),
    Command(
        "status",
        "Show the progress of the pipeline: rows in, out and quarantined, lag, rates.",
        status,
        arguments=(FILE,),
        options=(CONF, AS_JSON, Option("prometheus", "--prometheus", "Print in the text format of Prometheus.")),
    ),
    Command(
        "history",
        "Show the last batches, one per line.",
        history,
        arguments=(FILE,),
        options=(
            Option("last", "--last", "Batches to show.", metavar="N", kind=whole(1), default=20),
            CONF,
            AS_JSON,
        ),
    ),
    Command(
        "report",
        "Show what a run did: how it ended, rows, each expectation's result, batches.",
        report,
        arguments=(FILE,),
        options=(
            Option(
                "run", "--run", "The run, by the first letters of its id (default: the last).", metavar="ID", default=""
            ),
            Option("page", "--html", "Write an HTML page to this file instead.", metavar="FILE", kind=Path),
            Option("every", "--list", "List the stored runs, at most a hundred."),
            CONF,
            AS_JSON,
        ),
    ),
)
