"""What `ixion pipeline upkeep` does and prints."""

from __future__ import annotations

import json
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ixion.pipelines.errors import PipelineError

if TYPE_CHECKING:
    from ixion.pipelines.pipeline import Pipeline
    from ixion.pipelines.upkeep.results import Upkept


def upkept_line(result: Upkept, as_json: bool) -> str:
    return json.dumps(result.to_json()) if as_json else result.line()


def by_the_clock(pipeline: Pipeline, spark: Any, pause_ms: int, *, as_json: bool) -> None:
    """Every `pause_ms`, do what is due by `every` of its table, until Ctrl-C. A failure is retried the next time."""
    with _until_interrupted() as ending:
        while not ending.is_set():
            try:
                for result in pipeline.upkeep(spark, due=True):
                    print(upkept_line(result, as_json), flush=True)
            except PipelineError as error:
                if not error.retry:
                    raise
                print(f"ixion: {error}; trying again", file=sys.stderr)
            ending.wait(pause_ms / 1000)


@contextmanager
def _until_interrupted() -> Iterator[threading.Event]:
    ending = threading.Event()
    before = {number: signal.signal(number, lambda *_: ending.set()) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield ending
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
