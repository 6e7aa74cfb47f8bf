"""A client in a process of its own that is there before the broker is."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from types import TracebackType
from typing import Self

from benchmarks.loads.broker_clients import first_ack


class Client:
    def __init__(self) -> None:
        self._pool = ProcessPoolExecutor(max_workers=1, mp_context=multiprocessing.get_context("spawn"))
        self._warm = self._pool.submit(_ready)

    def wait(self) -> None:
        """Until it has been imported."""
        self._warm.result()

    def first_record(self, bootstrap: str) -> float:
        """The moment (time.time) at which a record was first acknowledged."""
        asked: Callable[[str], float] = first_ack
        return self._pool.submit(asked, bootstrap).result()

    def __enter__(self) -> Self:
        self.wait()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pool.shutdown()


def _ready() -> bool:
    """Unpickling this has imported the module, and so the client's library."""
    return True
