"""The catalog of applications is sound; `make apps` runs them."""

from __future__ import annotations

from pathlib import Path

import pytest

from devtools.apps.app import PROGRAMS, execute
from devtools.apps.catalog import APPS


def test_every_program_belongs_to_an_application() -> None:
    names = {app.name for app in APPS}
    assert len(names) == len(APPS)
    assert {path.stem.removeprefix("with_") for path in PROGRAMS.iterdir() if path.name != "__pycache__"} <= names


def test_a_scenario_that_fails_shows_its_last_words(tmp_path: Path) -> None:
    said = execute(["sh", "-c", "echo $BOOTSTRAP in $FOLDER"], "127.0.0.1:1", tmp_path)
    assert said == f"127.0.0.1:1 in {tmp_path}\n"
    with pytest.raises(RuntimeError, match="exit code 3: no such topic"):
        execute(["sh", "-c", "echo no such topic >&2; exit 3"], "127.0.0.1:1", tmp_path)
    with pytest.raises(RuntimeError, match="not done after 0 s"):
        execute(["sh", "-c", "exec sleep 60"], "127.0.0.1:1", tmp_path, 0.1)
