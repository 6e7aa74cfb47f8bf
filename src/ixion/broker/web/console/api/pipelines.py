"""The pipelines whose checkpoints are in the folders that `web.pipelines` names: last batches, last runs, what was
quarantined and why.

They are read from the files that a pipeline keeps beside Spark's (`<checkpoint>/ixion/`), on a worker thread. A folder
is a checkpoint, or holds checkpoints. Files are bounded in number and size, and what cannot be read is named.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final, TypedDict

from ixion.broker.web.console.api.records import on_thread
from ixion.broker.web.console.inside import Inside
from ixion.broker.web.request import HttpRequest
from ixion.config.web_settings import WEB_PIPELINES

MOST: Final = 200  # pipelines
MOST_BYTES: Final = 1 << 20  # of a file
BATCHES: Final = 20  # shown
RUNS: Final = 10
FRESH_S: Final = 4.0


class PipelineBatch(TypedDict):
    batch: int
    at: str  # when it began, ISO 8601
    rows_in: int
    rows_out: int
    quarantined: int
    lag: int  # offsets behind the end of its topics
    duration_ms: int
    rows_per_s: float


class PipelineRun(TypedDict):
    id: str
    began: str
    ended: str  # empty: it runs, or was killed
    outcome: str
    error: str
    rows_in: int
    rows_out: int
    quarantined: int


class Broken(TypedDict):
    expectation: str
    rows: int  # of the batches shown, that do not meet it


class PipelineRow(TypedDict):
    name: str
    folder: str
    topics: list[str]
    state: str  # the outcome of its last run; running: it began, and has not ended
    problem: str  # why something of it cannot be read
    batches: list[PipelineBatch]  # the last one first
    runs: list[PipelineRun]  # the last one first
    broken: list[Broken]


class Pipelines(TypedDict):
    folders: list[str]  # as they are named to the broker
    missing: list[str]  # those that are no folder, or cannot be read
    complete: bool  # False: there are more than are shown
    pipelines: list[PipelineRow]


async def pipelines(inside: Inside, _request: HttpRequest) -> Pipelines:
    folders = inside.config.current[WEB_PIPELINES]

    async def look() -> Pipelines:
        return await on_thread(inside, lambda: look_into(folders), "the pipelines")

    return await inside.history.shared("pipelines", look, FRESH_S)


def look_into(folders: tuple[str, ...]) -> Pipelines:
    found: list[PipelineRow] = []
    missing: list[str] = []
    complete = True
    for folder in folders:
        try:
            for place in checkpoints(Path(folder)):
                if len(found) >= MOST:
                    complete = False
                    break
                found.append(pipeline(place))
        except OSError as error:
            missing.append(f"{folder}: {error.strerror or error}")
    found.sort(key=lambda row: row["name"])
    return Pipelines(folders=list(folders), missing=missing, complete=complete, pipelines=found)


def checkpoints(folder: Path) -> Iterator[Path]:
    """OSError if the folder cannot be read."""
    if (folder / "ixion").is_dir():
        yield folder
        return
    for entry in sorted(os.scandir(folder), key=lambda each: each.name):
        if entry.is_dir() and os.path.isdir(f"{entry.path}/ixion"):
            yield Path(entry.path)


def pipeline(folder: Path) -> PipelineRow:
    made = PipelineRow(
        name=text(folder.name, 200),
        folder=text(folder, 4096),
        topics=[],
        state="",
        problem="",
        batches=[],
        runs=[],
        broken=[],
    )
    own = folder / "ixion"
    try:
        owner = read(own / "owner.json")
        made["name"] = text(owner.get("pipeline", folder.name), 200)
        made["topics"] = [text(each, 249) for each in owner.get("topics", [])][:100]
        batches = [read(path) for path in newest(own / "history", BATCHES)]
        made["batches"] = [batch_row(each) for each in batches]
        made["broken"] = broken_of(batches)
        made["runs"] = [run_row(read(path)) for path in newest(own / "runs", RUNS)]
        made["state"] = made["runs"][0]["outcome"] if made["runs"] else "has not run yet"
    except (OSError, ValueError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        made["problem"] = text(f"{type(error).__name__}: {error}", 300)
    return made


def read(path: Path) -> dict[str, Any]:
    """ValueError if it is no object of JSON, or too large. A file that was removed meanwhile has nothing."""
    try:
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
    except FileNotFoundError:
        return {}
    if len(data) > MOST_BYTES:
        raise ValueError(f"{path} is larger than {MOST_BYTES:,} bytes")
    found = json.loads(data)
    if not isinstance(found, dict):
        raise ValueError(f"{path} is no object of JSON")
    return found


def newest(folder: Path, most: int) -> list[Path]:
    """The last files by name, which is by number or by time."""
    if not folder.is_dir():
        return []
    return [folder / name for name in sorted(os.listdir(folder), reverse=True) if name.endswith(".json")][:most]


def whole(values: Mapping[str, Any], name: str) -> int:
    return int(values.get(name, 0))


def text(found: Any, most: int = 500) -> str:
    """Of a file or a name that may have what is no UTF-8."""
    return str(found)[:most].encode(errors="replace").decode()


def finite(values: Mapping[str, Any], name: str) -> float:
    found = float(values.get(name, 0))
    if not math.isfinite(found):
        raise ValueError(f"{name} is {found}")
    return found


def batch_row(found: Mapping[str, Any]) -> PipelineBatch:
    return PipelineBatch(
        batch=whole(found, "batch"),
        at=text(found.get("ended", "")),  # Spark reports when a batch began
        rows_in=whole(found, "rows_in"),
        rows_out=whole(found, "rows_out"),
        quarantined=whole(found, "quarantined"),
        lag=whole(found, "lag"),
        duration_ms=whole(found, "duration_ms"),
        rows_per_s=finite(found, "rows_per_s"),
    )


def run_row(found: Mapping[str, Any]) -> PipelineRun:
    figures = found.get("figures", {})
    return PipelineRun(
        id=text(found.get("id", "")),
        began=text(found.get("began", "")),
        ended=text(found.get("ended", "")),
        outcome=text(found.get("outcome", "")),
        error=text(found.get("error", "")),
        rows_in=whole(figures, "rows_in"),
        rows_out=whole(figures, "rows_out"),
        quarantined=whole(figures, "quarantined"),
    )


def broken_of(batches: list[dict[str, Any]]) -> list[Broken]:
    sums: dict[str, int] = {}
    for batch in batches:
        for name, rows in dict(batch.get("broken", {})).items():
            sums[str(name)] = sums.get(str(name), 0) + int(rows)
    rows = [Broken(expectation=text(name, 200), rows=count) for name, count in sums.items() if count]
    return sorted(rows, key=lambda each: -each["rows"])[:50]
