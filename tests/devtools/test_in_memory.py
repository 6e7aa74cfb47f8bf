"""Temporary files in memory: given to the command, removed afterwards, left alone where there is no room."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from devtools import in_memory

WRITE = """
import os, sys, tempfile
handle, name = tempfile.mkstemp()
print(name, file=open(sys.argv[1], "w"))
sys.exit(3)
"""


@pytest.fixture
def mount(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("IXION_TESTS_ON_DISK", raising=False)
    monkeypatch.setattr(in_memory, "room", lambda _mount: in_memory.ROOM)
    monkeypatch.setattr("signal.signal", lambda *_: None)
    folder = tmp_path / "memory"
    folder.mkdir()
    return folder


def written(mount: Path, tmp_path: Path) -> Path:
    """Where a command put its temporary file."""
    said = tmp_path / "said"
    assert in_memory.run([sys.executable, "-c", WRITE, str(said)], mount) == 3
    return Path(said.read_text().strip())


def test_temporary_files_are_in_memory_and_gone_afterwards(mount: Path, tmp_path: Path) -> None:
    file = written(mount, tmp_path)
    assert file.parent.parent == mount
    assert os.listdir(mount) == []


@pytest.mark.parametrize("reason", ["no room", "asked for"])
def test_without_room_or_when_asked_for_the_usual_directory_is_used(
    mount: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, reason: str
) -> None:
    if reason == "no room":
        monkeypatch.setattr(in_memory, "room", lambda _mount: in_memory.ROOM - 1)
    else:
        monkeypatch.setenv("IXION_TESTS_ON_DISK", "1")
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    assert written(mount, tmp_path).parent == tmp_path


def test_what_a_killed_run_left_is_removed_by_the_next(mount: Path, tmp_path: Path) -> None:
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    (mount / f"{in_memory.PREFIX}{ended.pid}-x" / "deep").mkdir(parents=True)
    running = mount / f"{in_memory.PREFIX}{os.getpid()}-y"
    running.mkdir()
    written(mount, tmp_path)
    assert list(mount.iterdir()) == [running]


def test_where_nothing_is_mounted_there_is_no_room(tmp_path: Path) -> None:
    assert in_memory.room(tmp_path / "nothing") == 0
    assert in_memory.room(tmp_path) > 0
