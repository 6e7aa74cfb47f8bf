"""What `ixion pipeline export` writes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from ixion.pipelines.declarative import project
from ixion.pipelines.errors import PipelineError
from ixion.pipelines.spec import load_spec


def write_project(file: Path, folder: Path | None) -> Iterator[str]:
    if folder is None:
        raise PipelineError("export needs to know where to: --sdp FOLDER")
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise PipelineError(f"{folder} is not an empty folder", hint="name a new one: --sdp FOLDER")
    for name, text in project(load_spec(file), folder).items():
        place = folder / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text, "utf-8")
        yield f"wrote {place}"
    yield f"now: spark-pipelines run --spec {folder / 'spark-pipeline.yml'}"
