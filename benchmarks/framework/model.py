"""The words of a benchmark.

A *row* is one thing measured, in one unit. A *contender* is a program that can do it: ours or a peer; called once per
round, it does its work and answers {row key: value}. A *cell* is a row of one contender; after the rounds it holds
a sample of values. A *goal* compares two cells, or a cell with a fixed number. A *curve* is made of rows that measure
the same at several sizes.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass
from typing import TypeVar

Cell = tuple[str, str]  # row key, contender name
Contender = Callable[[], Mapping[str, float]]
T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    key: str
    label: str
    unit: str
    charted: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """`value / base` is at most, or at least, so much. A base that is a number is a limit in the row's own unit."""

    label: str
    value: Cell
    base: Cell | float
    at_most: float | None = None
    at_least: float | None = None

    def __post_init__(self) -> None:
        if (self.at_most is None) == (self.at_least is None):
            raise ValueError(f"goal {self.label!r} needs exactly one of at_most and at_least")

    @property
    def wanted(self) -> str:
        return f"≤ {self.at_most:g}" if self.at_most is not None else f"≥ {self.at_least:g}"

    def met_by(self, ratio: float) -> bool:
        if self.at_most is not None:
            return ratio <= self.at_most
        assert self.at_least is not None
        return ratio >= self.at_least


@dataclass(frozen=True, slots=True, kw_only=True)
class Curve:
    title: str
    size: str  # what the sizes count
    unit: str
    points: Mapping[int, str]  # size -> row key
    more_is_better: bool = False


class Session:
    """One run of one benchmark: whether it is to be quick, and a place for what must be closed at its end."""

    def __init__(self, *, quick: bool, stack: ExitStack) -> None:
        self.quick = quick
        self._stack = stack

    def enter(self, resource: AbstractContextManager[T]) -> T:
        """Opens a resource (a JVM, a broker, a directory) that lives until the last round is over."""
        return self._stack.enter_context(resource)


@dataclass(frozen=True, slots=True, kw_only=True)
class Benchmark:
    name: str
    title: str
    rows: tuple[Row, ...]
    goals: tuple[Goal, ...]
    baseline: str  # the contender all others are compared with in tables and chart
    contenders: Callable[[Session], Mapping[str, Contender]]
    rounds: int = 5
    curves: tuple[Curve, ...] = ()  # drawn instead of bars

    def row(self, key: str) -> Row:
        return next(row for row in self.rows if row.key == key)


@dataclass(frozen=True, slots=True)
class Sample:
    """What the rounds gave for one cell."""

    values: tuple[float, ...]

    @property
    def median(self) -> float:
        return statistics.median(self.values)

    @property
    def low(self) -> float:
        return min(self.values)

    @property
    def high(self) -> float:
        return max(self.values)


@dataclass(frozen=True, slots=True)
class Verdict:
    goal: Goal
    ratio: float | None  # None: one of the two was not measured

    @property
    def met(self) -> bool | None:
        return None if self.ratio is None else self.goal.met_by(self.ratio)


@dataclass(frozen=True, slots=True)
class Outcome:
    benchmark: Benchmark
    contenders: tuple[str, ...]
    cells: Mapping[Cell, Sample]

    def ratio(self, value: Cell, base: Cell | float) -> float | None:
        """The median over the rounds of value / base.

        Each round is divided by itself: a neighbour who slows the machine down for a while slows down both sides.
        """
        ours = self.cells.get(value)
        if ours is None:
            return None
        if not isinstance(base, tuple):
            return ours.median / base
        theirs = self.cells.get(base)
        if theirs is None or min(theirs.low, ours.low) <= 0:  # a lateness can be negative; its ratio says nothing
            return None
        if len(ours.values) != len(theirs.values):
            return ours.median / theirs.median
        return statistics.median(mine / other for mine, other in zip(ours.values, theirs.values, strict=True))

    def verdicts(self) -> list[Verdict]:
        return [Verdict(goal, self.ratio(goal.value, goal.base)) for goal in self.benchmark.goals]
