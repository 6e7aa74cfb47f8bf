"""Runs a benchmark: rounds in which all contenders take their turn, the order reversed every time.

The machine is shared and its speed drifts. The contender that always went first would get the cold caches and
the cool processor, so contender A goes first in odd rounds and last in even ones.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from contextlib import ExitStack

from benchmarks.framework.model import Benchmark, Cell, Outcome, Sample, Session

QUICK_ROUNDS = 1


def run(benchmark: Benchmark, *, quick: bool, say: Callable[[str], None], only: str = "") -> Outcome:
    """`only`: the contenders with these names, which are separated by commas, or whose names begin so."""
    known = {row.key for row in benchmark.rows}
    values: dict[Cell, list[float]] = {}
    rounds = QUICK_ROUNDS if quick else benchmark.rounds
    with ExitStack() as stack:
        say("getting ready")
        contenders = benchmark.contenders(Session(quick=quick, stack=stack))
        words = only.split(",")
        names = [name for name in contenders if name in words or name.startswith(tuple({*words} - contenders.keys()))]
        if not names:
            raise ValueError(f"{benchmark.name}: {only!r} begins none of these: {', '.join(contenders)}")
        for number in range(1, rounds + 1):
            for name in names if number % 2 else reversed(names):
                say(f"round {number} of {rounds}: {name}")
                gc.collect()
                measured = contenders[name]()
                if unknown := measured.keys() - known:
                    raise ValueError(f"{benchmark.name}: {name} measured rows that are not declared: {unknown}")
                for key, value in measured.items():
                    values.setdefault((key, name), []).append(value)
    cells = {cell: Sample(tuple(sample)) for cell, sample in values.items()}
    return Outcome(benchmark, tuple(names), cells)
