"""The same for many logs, at the same time.

Making, renaming and deleting a log waits for the disk to write names down, and a disk that is asked for many of them at
once writes them together. A thousand new logs on a busy disk: 14 s one after the other, 0.8 s by eight threads.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeVar

from ixion.model.errors import KafkaError
from ixion.model.pools import MakePool, threads

T = TypeVar("T")

THREADS: Final = 8


def for_each(
    items: Sequence[T], work: Callable[[T], object], make_pool: MakePool = threads
) -> list[tuple[T, KafkaError]]:
    """Returns when all is done: those that failed, and why. Blocks."""

    def attempt(item: T) -> tuple[T, KafkaError] | None:
        try:
            work(item)
        except KafkaError as error:
            return item, error
        return None

    if len(items) < 2:
        results = [attempt(item) for item in items]
    else:
        with make_pool(min(THREADS, len(items)), "logs") as pool:
            results = list(pool.map(attempt, items))
    return [failed for failed in results if failed is not None]
