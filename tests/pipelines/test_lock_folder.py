"""Where the lock of a checkpoint lies that is not on this machine: a folder that no other user can prepare."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from ixion.pipelines.checkpoint.lock import free_for_upkeep, held_for_run, private_folder
from ixion.pipelines.errors import PipelineError


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path / f"ixion-{os.getuid()}"


def test_it_is_made_for_this_user_alone(folder: Path) -> None:
    for _ in range(2):
        assert private_folder() == str(folder)
    assert folder.stat().st_mode & 0o777 == 0o700


def linked(folder: Path) -> None:
    elsewhere = folder.with_name("elsewhere")
    elsewhere.mkdir(0o700)
    folder.symlink_to(elsewhere)


def dangling(folder: Path) -> None:
    folder.symlink_to(folder.with_name("missing"))


def file_of_ours(folder: Path) -> None:
    folder.touch(0o600)


def open_to(mode: int) -> Callable[[Path], None]:
    def make(folder: Path) -> None:
        folder.mkdir()
        folder.chmod(mode)

    return make


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(linked, id="a symlink"),
        pytest.param(dangling, id="a symlink to nothing"),
        pytest.param(file_of_ours, id="a file"),
        pytest.param(open_to(0o702), id="all may write"),
        pytest.param(open_to(0o720), id="the group may write"),
        pytest.param(open_to(0o755), id="all may read"),
    ],
)
def test_what_others_may_have_prepared_is_refused(folder: Path, make: Callable[[Path], None]) -> None:
    make(folder)
    with pytest.raises(PipelineError, match="must be a folder that only this user can read"):
        private_folder()


def test_the_folder_of_another_user_is_refused(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = os.getuid()
    monkeypatch.setattr(os, "getuid", lambda: mine + 1)
    (folder.with_name(f"ixion-{mine + 1}")).mkdir(0o700)  # by us, who are another user than the one asked for
    with pytest.raises(PipelineError, match="must be a folder"):
        private_folder()


@pytest.mark.parametrize("hold", [held_for_run, free_for_upkeep])
def test_a_lock_that_is_a_symlink_is_refused(
    tmp_path: Path, hold: Callable[[str, int], AbstractContextManager[object]]
) -> None:
    """Its target would be emptied."""
    target = tmp_path / "target"
    target.write_text("precious")
    (tmp_path / "lock").symlink_to(target)
    with pytest.raises(PipelineError, match="must be a file of its own"), hold(str(tmp_path / "lock"), 0):
        pass
    assert target.read_text() == "precious"
