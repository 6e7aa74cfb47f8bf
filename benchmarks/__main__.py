"""python -m benchmarks [NAME ...] [--quick]: runs all benchmarks, or those named, from the checkout.

python -m benchmarks delay --only Pulsar,NATS    measures these contenders and keeps the last results of the others
"""

from __future__ import annotations

import argparse
import importlib
import os
import pkgutil
import sys
from functools import partial

from rich.console import Console
from rich.status import Status

import benchmarks
from benchmarks.framework import page, report
from benchmarks.framework.machine import facts
from benchmarks.framework.model import Benchmark
from benchmarks.framework.neighbours import Neighbours
from benchmarks.framework.rounds import run
from devtools.cache import CHECKOUT


def names() -> list[str]:
    """Every module in this directory is a benchmark, but for this one and the framework."""
    return sorted(
        found.name
        for found in pkgutil.iter_modules(benchmarks.__path__)
        if not found.ispkg and found.name != "__main__"
    )


def load(name: str) -> Benchmark:
    benchmark = importlib.import_module(f"benchmarks.{name}").BENCHMARK
    assert isinstance(benchmark, Benchmark)
    assert benchmark.name == name, f"benchmarks/{name}.py calls itself {benchmark.name}"
    return benchmark


def _say(status: Status, name: str, text: str) -> None:
    status.update(f"{name}: {text}")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="ixion side by side with its peers")
    parser.add_argument("name", nargs="*", help=f"of {', '.join(names())}; all of them if none is named")
    parser.add_argument("--quick", action="store_true", help="one short round, to see that it works; saves nothing")
    parser.add_argument(
        "--only",
        default="",
        help="contenders whose names begin so, with commas; keeps what the last run has measured of the others",
    )
    arguments = parser.parse_args()
    if unknown := set(arguments.name) - set(names()):
        parser.error(f"no such benchmark: {', '.join(sorted(unknown))}")
    console = Console(width=None if sys.stdout.isatty() else 140)
    machine = facts()
    console.print(" · ".join(f"{key} {value}" for key, value in machine.items()))
    for name in arguments.name or [
        each for each in names() if each != "before" or os.environ.get("IXION_BENCH_BEFORE")
    ]:
        if arguments.only and not arguments.quick and (elsewhere := report.measured_elsewhere(name, machine)):
            parser.error(f"{name}: the others were measured on another machine ({elsewhere}); run it without --only")
        benchmark = load(name)
        neighbours = Neighbours()
        with console.status(name) as status:
            outcome = run(benchmark, quick=arguments.quick, say=partial(_say, status, name), only=arguments.only)
        report.show(outcome, console)
        others = round(neighbours.share() * 100)
        console.print(f"{others} % of the machine was used by others meanwhile")
        if not arguments.quick:
            kept, used = report.with_last(outcome, others) if arguments.only else (outcome, others)
            for path in report.save(kept, machine | {"used_by_others_percent": used}):
                console.print(f"wrote {path.relative_to(CHECKOUT)}")
    if not arguments.quick:
        console.print(f"wrote {page.write().relative_to(CHECKOUT)}")


if __name__ == "__main__":
    main()
