"""Installing succeeds without a compiler, and says what it became."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ixion.cli.main import build_kind

ROOT = Path(__file__).parent.parent
NEEDED = ("src", "setup.py", "pyproject.toml", "README.md", "LICENSE")

pytestmark = pytest.mark.skipif(build_kind() == "interpreted", reason="the same in both runs; done in the compiled one")


def install(tmp_path: Path, **environment: str) -> str:
    """Install a copy of the checkout into a directory of its own; returns what `ixion --version` says there."""
    checkout, target = tmp_path / "checkout", tmp_path / "target"
    checkout.mkdir()
    for name in NEEDED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, checkout / name, ignore=shutil.ignore_patterns("*.egg-info", "__pycache__"))
        else:
            shutil.copy(source, checkout / name)
    env = {key: value for key, value in os.environ.items() if key not in ("IXION_REQUIRE_COMPILED", "PYTHONPATH")}
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "--no-deps", "--no-build-isolation", "--target", target, checkout],
        env=env | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=True,
    )
    said = subprocess.run(
        [sys.executable, "-m", "ixion", "--version"],
        env=env | {"PYTHONPATH": str(target)},
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return said.stdout


def test_interpreted_on_request(tmp_path: Path) -> None:
    assert "(interpreted)" in install(tmp_path, IXION_PURE="1")


def test_interpreted_where_there_is_no_compiler(tmp_path: Path) -> None:
    assert "(interpreted)" in install(tmp_path, CC=str(tmp_path / "no-such-compiler"))
