"""Runs seeds, each in a process of its own, and says which of them failed and how to see it again."""

from __future__ import annotations

import argparse
import logging
import os
import pickle
import sys
import time
from collections.abc import Callable, Iterable
from typing import Any, Final

from devtools.sim import patches
from devtools.sim.faults import KINDS, Fault, make_faults
from devtools.sim.jobs import JOBS
from devtools.sim.kept import KEPT, TWINS, Kept
from devtools.sim.mutants import HINTS, MUTANTS, apply
from devtools.sim.run import KEYS, Outcome, simulate

_now_s = time.clock_gettime
LENGTH_S: Final = 16.0  # virtual seconds with faults
SEEDS: Final = 20
HUNT_SEEDS: Final = 200
QUIET_PACE_S: Final = 10.0
QUICK_SEED: Final = (3, 4.0)  # and virtual seconds
QUICK_MUTANTS: Final = ("leader-alone",)  # any seed of a few finds it
QUICK_SEEDS: Final = 20


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m devtools.sim", description="a cluster in virtual time")
    parser.add_argument("--seeds", type=int, help="how many, from --first on (default: 20; 200 with --mutants)")
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--seed", type=int, help="only this one, with its faults and notes")
    parser.add_argument("--length", type=float, default=LENGTH_S, help="virtual seconds with faults")
    parser.add_argument("--quiet-hour", action="store_true", help="no faults, an hour of light load")
    parser.add_argument("--mutant", choices=sorted(MUTANTS), help="a broken broker, which must be found")
    parser.add_argument(
        "--mutants", nargs="?", const="all", help="each of these, or all, until a seed finds it: a table"
    )
    parser.add_argument(
        "--all-faults", action="store_true", help="with --mutants: draw from all faults, not from those in the table"
    )
    parser.add_argument("--faults", default=",".join(KINDS), help="kinds of faults, by comma")
    parser.add_argument("--job", default="", choices=sorted(JOBS), help="what other clients do (the seed decides)")
    parser.add_argument("--only", help="which faults of the schedule, by number: 0,3,7")
    parser.add_argument("--shrink", action="store_true", help="drop faults while the seed still fails")
    parser.add_argument("--trace", help="write every event into this file")
    parser.add_argument("--digest", action="store_true", help="print the digest of each run")
    parser.add_argument("--verbose", action="store_true", help="the log lines of the brokers")
    parser.add_argument("--kept", action="store_true", help="the runs that once found a fault")
    parser.add_argument("--sources", action="store_true", help="run src/, not the installed (compiled) copy")
    parser.add_argument("--quick", action="store_true", help="what the test suite runs")
    given = parser.parse_args(arguments)
    given.seeds = given.seeds or (HUNT_SEEDS if given.mutants else SEEDS)
    patches.connect_ixion()
    warm_up()
    logging.basicConfig(
        level=logging.INFO if given.verbose else logging.CRITICAL + 1, format="%(created).6f %(name)s %(message)s"
    )
    logging.getLogger().setLevel(logging.INFO if given.verbose else logging.WARNING)
    if not given.verbose:
        logging.getLogger().handlers[0].setLevel(logging.CRITICAL + 1)
    if given.kept:
        return 0 if run_kept((*KEPT, *TWINS), given.mutant) else 1
    if given.quick:
        return quick()
    if given.mutants:
        return hunt(given.mutants, given.seeds, given.first, {} if given.all_faults else HINTS)
    if given.quiet_hour:
        given.length, given.seeds, given.job = 3_600.0, 1, "none"
    pace_s = QUIET_PACE_S if given.quiet_hour else 0.0
    kinds = {} if given.quiet_hour else {name: KINDS.get(name, 3) for name in given.faults.split(",")}

    def schedule(seed: int) -> list[Fault]:
        faults = make_faults(seed, given.length, KEYS, kinds) if kinds else []
        return faults if given.only is None else [faults[int(each)] for each in given.only.split(",") if each]

    def run(seed: int, faults: list[Fault] | None = None) -> Outcome:
        chosen = schedule(seed) if faults is None else faults
        return in_child(
            lambda: simulate(
                seed, chosen, length_s=given.length, keep_trace=bool(given.trace), pace_s=pace_s, job=given.job
            ),
            given.mutant,
        )

    # What a run depends on beside its seed.
    options = "".join(
        f" --{name} {getattr(given, name)}"
        for name in ("mutant", "job", "faults", "length")
        if getattr(given, name) not in (None, parser.get_default(name))
    )
    if given.seed is not None:
        outcome = run(given.seed)
        for line in outcome.lines if not given.trace else ():
            print(line)
        if given.trace:
            with open(given.trace, "w") as file:
                file.writelines(line + "\n" for line in outcome.lines)
        report(outcome, 0.0)
        if given.shrink and outcome.broken:
            shrink(given.seed, schedule(given.seed), outcome, run, options)
        return 1 if outcome.broken else 0
    failed = 0
    for seed in range(given.first, given.first + given.seeds):
        begun = _now_s(time.CLOCK_MONOTONIC)
        outcome = run(seed)
        report(outcome, _now_s(time.CLOCK_MONOTONIC) - begun, quiet=not given.digest)
        if outcome.broken:
            failed += 1
            print(f"  again: make sim ARGS='--seed {seed}{options} --shrink'", flush=True)
            if given.mutant:
                print(f"mutant {given.mutant}: found by seed {seed} ({seed - given.first + 1} seeds), {outcome.broken}")
                return 0
    print(f"{given.seeds} seeds, {failed} failed")
    if given.mutant:
        print(f"mutant {given.mutant}: not found")
        return 1
    return 1 if failed else 0


def report(outcome: Outcome, seconds: float, quiet: bool = False) -> None:
    what = outcome.text or "ok"
    line = f"seed {outcome.seed}: {what}"
    if not quiet or outcome.broken:
        line += (
            f" [{outcome.job}, {outcome.acknowledged} acknowledged, {outcome.faults} faults,"
            f" {outcome.virtual_s:.0f} virtual s in {seconds:.1f} s, {outcome.events} events, trace {outcome.digest}]"
        )
    print(line, flush=True)


def quick() -> int:
    """Some seconds for the test suite: a seed twice, the runs that found something, and a broken broker until a seed
    finds it."""

    def run(seed: int, length_s: float, mutant: str | None = None) -> Outcome:
        faults = make_faults(seed, length_s, KEYS, KINDS)
        return in_child(lambda: simulate(seed, faults, length_s=length_s, job="none"), mutant)

    first, again = run(*QUICK_SEED), run(*QUICK_SEED)
    report(first, 0.0)
    report(again, 0.0)
    if first.broken or not first.acknowledged or first.digest != again.digest:
        return 1
    if not run_kept(KEPT):
        return 1
    return 0 if all(is_found(mutant, run) for mutant in QUICK_MUTANTS) else 1


def run_kept(runs: Iterable[Kept], mutant: str | None = None) -> bool:
    """Whether all hold. The first that does not ends it."""
    for kept in runs:
        outcome = in_child(
            lambda kept=kept: simulate(  # type: ignore[misc]
                kept.seed, kept.schedule(KEYS), length_s=kept.length_s, job=kept.job
            ),
            mutant,
        )
        print(f"kept, {kept.what}: {outcome.text or 'ok'}", flush=True)
        if outcome.broken:
            return False
    return True


def hunt(wanted: str, seeds: int, first: int, hints: dict[str, tuple[str, str]]) -> int:
    """The rows of the table in docs/reliability.md. A run that breaks must hold without the mutant."""
    names = list(MUTANTS) if wanted == "all" else wanted.split(",")
    missed = 0
    for name in names:
        hint, job = hints.get(name, ("", ""))
        kinds = {kind: KINDS[kind] for kind in hint.split(",")} if hint else KINDS
        row = f"not found in {seeds} | -"
        for seed in range(first, first + seeds):
            faults = make_faults(seed, LENGTH_S, KEYS, kinds)

            def run(seed: int = seed, faults: list[Fault] = faults, job: str = job) -> Outcome:
                return simulate(seed, faults, length_s=LENGTH_S, job=job)

            outcome = in_child(run, name)
            if outcome.broken:
                whole = in_child(run)
                row = f"{seed - first + 1} | {outcome.broken}"
                if whole.broken:
                    row += f", but without the mutant {whole.broken}"
                break
        else:
            missed += 1
        said = " ".join((MUTANTS[name].__doc__ or "").split()).rstrip(".")
        print(f"| `{name}` | {said} | {hint or 'all'} | {row} |", flush=True)
    return 1 if missed else 0


def is_found(mutant: str, run: Callable[..., Outcome]) -> bool:
    for seed in range(1, QUICK_SEEDS + 1):
        outcome = run(seed, QUICK_SEED[1], mutant)
        if outcome.broken:
            print(f"mutant {mutant}: found by seed {seed}, {outcome.text}", flush=True)
            return True
    print(f"mutant {mutant}: not found", flush=True)
    return False


def shrink(seed: int, faults: list[Fault], outcome: Outcome, run: Callable[..., Outcome], options: str) -> None:
    """Drop as many faults as possible while the same invariant breaks: halves first, then one by one."""
    kept = list(range(len(faults)))
    size = max(len(kept) // 2, 1)
    while True:
        position = 0
        while position < len(kept):
            fewer = kept[:position] + kept[position + size :]
            if run(seed, [faults[each] for each in fewer]).broken == outcome.broken:
                kept = fewer
                print(f"  {len(kept)} faults are enough", flush=True)
            else:
                position += size
        if size == 1:
            break
        size = max(size // 2, 1)
    for each in kept:
        print(f"  {each}: {faults[each]}")
    print(f"  again: make sim ARGS='--seed {seed}{options} --only {','.join(map(str, kept))}'")


def in_child(work: Callable[[], Outcome], mutant: str | None = None) -> Outcome:
    """In a fork: every run begins with the same process, and a broken broker ends with it."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            os.close(reading)
            if mutant:
                apply(mutant)
            data = pickle.dumps(work())
            with os.fdopen(writing, "wb") as file:
                file.write(data)
            code = 0
        except BaseException:
            import traceback

            traceback.print_exc()
        finally:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(code)
    os.close(writing)
    with os.fdopen(reading, "rb") as file:
        data = file.read()
    _, status = os.waitpid(child, 0)
    if status or not data:
        raise SystemExit(f"the run ended with status {status}")
    outcome: Outcome = pickle.loads(data)
    return outcome


def warm_up() -> None:
    """Import what a run may import, so that no run differs from another by it."""
    import importlib
    import pkgutil

    import ixion.broker
    import ixion.clients
    import ixion.language.protocol.messages

    packages: list[Any] = [ixion.broker, ixion.clients, ixion.language.protocol.messages]
    for package in packages:
        for found in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
            try:
                importlib.import_module(found.name)
            except ImportError:
                pass  # needs an extra
