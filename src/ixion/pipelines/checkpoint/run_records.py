"""The record of a run: when it began and ended, how it ended, and the result of each expectation.

    <checkpoint>/ixion/runs/20261117T123000.123456Z.json

It is written when the run begins and again when it ends. So a killed run has begun and never ended.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from types import TracebackType
from typing import Any, Final

from ixion.pipelines.batch.metrics import BatchFigures, RunFigures

KEPT: Final = 100  # runs
RUNNING: Final = "running"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    id: str  # a UUID
    began: str  # ISO 8601, UTC
    ended: str = ""
    outcome: str = RUNNING  # running, complete, failed, stopped
    error: str = ""
    figures: RunFigures = field(default_factory=RunFigures)

    @property
    def name(self) -> str:
        """A file name that sorts by time."""
        return self.began.replace("-", "").replace(":", "").replace("+0000", "Z")

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def record_of(values: Mapping[str, Any]) -> RunRecord:
    figures = {name: value for name, value in values["figures"].items() if name in RunFigures.__dataclass_fields__}
    return RunRecord(**{**values, "figures": RunFigures(**figures)})


def utc_now() -> datetime:
    return datetime.now(UTC)


class RunLog:
    """A context manager around a run: it passes each change of the record to all KEEPERS."""

    def __init__(
        self,
        id: str,  # noqa: A002 - what it is called in the record
        keepers: list[Callable[[RunRecord], None]],
        explain: Callable[[BaseException], str],
        now: Callable[[], datetime] = utc_now,
    ) -> None:
        """EXPLAIN turns an error into one line. KEEPERS are called in their order."""
        self.keepers: Final = keepers
        self.given_up = False  # stopped in the middle of a batch
        self._explain: Final = explain
        self._now: Final = now
        self.record = RunRecord(id=id, began=self._time())

    def __enter__(self) -> RunLog:
        self._keep()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        outcome = "stopped" if self.given_up else "complete"
        if error is not None:
            outcome = "failed" if isinstance(error, Exception) else "stopped"
        said = self._explain(error) if isinstance(error, Exception) else ""
        self.record = replace(self.record, ended=self._time(), outcome=outcome, error=said)
        try:
            self._keep()
        except Exception:
            if error is None:  # otherwise that is what counts, such as a disk that is full
                raise

    def add(self, batch: BatchFigures) -> None:
        self.record = replace(self.record, figures=self.record.figures.plus(batch))

    def _keep(self) -> None:
        for keep in self.keepers:
            keep(self.record)

    def _time(self) -> str:
        return self._now().isoformat(timespec="microseconds")
