from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from devtools.cache import CHECKOUT, cache_dir, made_once


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IXION_CACHE", str(tmp_path))


def test_a_part_is_made_once_and_found_afterwards() -> None:
    made: list[Path] = []

    def make(directory: Path) -> None:
        made.append(directory)
        (directory / "file").write_text("whole")

    first = made_once("kind", "name", make)
    assert made_once("kind", "name", make) == first == cache_dir() / "kind" / "name"
    assert (first / "file").read_text() == "whole"
    assert len(made) == 1


def test_a_part_that_fails_leaves_nothing_and_can_be_made_later() -> None:
    def fail(directory: Path) -> None:
        (directory / "half").write_text("half")
        raise RuntimeError("no network")

    with pytest.raises(RuntimeError, match="no network"):
        made_once("kind", "name", fail)
    assert list((cache_dir() / "kind").iterdir()) == []
    assert list(made_once("kind", "name", lambda directory: None).iterdir()) == []


def test_of_several_processes_that_ask_at_once_one_makes_it(tmp_path: Path) -> None:
    program = (
        "import os, pathlib, time\n"
        "from devtools.cache import made_once\n"
        "def make(directory):\n"
        "    (directory / str(os.getpid())).touch()\n"
        "    (pathlib.Path(os.environ['IXION_CACHE']) / f'made-{os.getpid()}').touch()\n"
        "    time.sleep(0.2)\n"  # long enough for the others to arrive at the lock
        "made_once('kind', 'name', make)\n"
    )
    asking = [subprocess.Popen([sys.executable, "-c", program], cwd=CHECKOUT) for _ in range(3)]
    assert [process.wait() for process in asking] == [0, 0, 0]
    assert len(list(tmp_path.glob("made-*"))) == 1
    assert len(list((tmp_path / "kind" / "name").iterdir())) == 1
