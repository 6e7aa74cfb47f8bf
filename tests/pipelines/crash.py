"""Simulates the end of the process at a chosen moment: nothing after it is done.

Use it to stop a pipeline between two steps without killing the process of the test.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from ixion.pipelines.errors import PipelineError


class CrashError(Exception):
    """Stands for the end of the process."""


def crash_before(module: Any, name: str, times: int) -> Callable[..., Any]:
    """NAME of MODULE does its work TIMES times, then the process is over."""
    real = getattr(module, name)
    left = [times]

    def cut(*arguments: Any, **named: Any) -> Any:
        if left[0] == 0:
            raise CrashError
        left[0] -= 1
        return real(*arguments, **named)

    return cut


@contextmanager
def crash_after_a_batch(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The run in this block ends when its first batch is in the tables and Spark's checkpoint does not know it yet."""
    from ixion.pipelines.batch.write import BatchWriter

    real = BatchWriter._write

    def write_and_crash(self: BatchWriter, *arguments: Any) -> Any:
        real(self, *arguments)
        raise CrashError

    with monkeypatch.context() as patch:
        patch.setattr(BatchWriter, "_write", write_and_crash)
        with pytest.raises(PipelineError):
            yield
