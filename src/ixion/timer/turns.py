"""Runs long work on an event loop in time slices.

While one callback runs, no other client is served. Work that may be long (a list that a client sent, a log to replay,
ten thousand groups to expire) is written as a generator that yields after every small step. It runs for `TURN_NS` at a
time, and the loop gets its turn in between.

    def expire(groups: list[Group]) -> Steps[int]:      found = await in_turns(expire(groups))
        expired = 0
        for group in groups:
            expired += group.expire()
            yield
        return expired

Other code runs between two turns and sees the state that a step has left, so a step must be a complete change. A step
must be far shorter than a turn: the time is checked after each step, and a step is not interrupted.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from heapq import merge
from time import perf_counter_ns
from typing import Final, TypeVar, cast

T = TypeVar("T")
R = TypeVar("R")
Steps = Generator[None, None, T]

TURN_NS: Final = 5_000_000  # a tenth of a stall: ten concurrent jobs do not make one
SORTED_AT_ONCE: Final = 2_000  # items; sorting them takes some 500 µs
MERGED_AT_ONCE: Final = 256


class Turn:
    """For loops that cannot be generators: if `is_over`, leave the rest for later."""

    __slots__ = ("_until",)

    def __init__(self, length_ns: int = TURN_NS) -> None:
        self._until: Final = perf_counter_ns() + length_ns

    def is_over(self) -> bool:
        return perf_counter_ns() >= self._until


class Pauses:
    """For loops of a coroutine that may run many rounds without awaiting."""

    __slots__ = ("_turn",)

    def __init__(self) -> None:
        self._turn = Turn()

    async def pause(self) -> None:
        """Give the loop its turn if this one is over."""
        if self._turn.is_over():
            from asyncio import sleep

            await sleep(0)
            self._turn = Turn()


def map_steps(function: Callable[[T], R], items: Iterable[T]) -> Steps[list[R]]:
    """`function` of each item, one per step."""
    made: list[R] = []
    for item in items:
        made.append(function(item))
        yield
    return made


def run_turn(steps: Steps[T], length_ns: int = TURN_NS) -> tuple[T] | None:
    """Runs `steps` for one turn: (result,) if they are done, None if there is more."""
    until = perf_counter_ns() + length_ns
    try:
        while True:
            next(steps)
            if perf_counter_ns() >= until:
                return None
    except StopIteration as end:
        return (end.value,)


def sort_steps(items: Iterable[T]) -> Steps[list[T]]:
    """`sorted` in steps: sorts pieces, and merges them item by item."""
    pieces: list[list[T]] = []
    piece: list[T] = []
    for item in items:
        piece.append(item)
        if len(piece) == SORTED_AT_ONCE:
            piece.sort()
            pieces.append(piece)
            piece = []
            yield
    piece.sort()
    if not pieces:
        return piece
    pieces.append(piece)
    merged: list[T] = []
    for item in merge(*pieces):  # type: ignore[type-var]
        merged.append(item)
        if len(merged) % MERGED_AT_ONCE == 0:
            yield
    return merged


def finish(steps: Steps[T]) -> T:
    """The result of `steps`, without pauses: for few steps."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return cast(T, end.value)


async def in_turns(steps: Steps[T]) -> T:
    """The result of `steps`. The first turn runs at once: short work does not wait for the loop."""
    from asyncio import sleep  # asyncio takes 40 ms to import, and a broker has it already

    result = run_turn(steps)
    while result is None:
        await sleep(0)
        result = run_turn(steps)
    return result[0]


def start_in_turns(
    call_soon: Callable[..., object], steps: Steps[T], done: Callable[[T | None, Exception | None], object]
) -> None:
    """As `in_turns`, without a task: `done` gets the result, or the exception that ended the work."""
    try:
        result = run_turn(steps)
    except Exception as error:
        done(None, error)
        return
    if result is None:
        call_soon(start_in_turns, call_soon, steps, done)
    else:
        done(result[0], None)
