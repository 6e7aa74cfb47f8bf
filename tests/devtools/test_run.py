"""`make run` on a fresh machine: few packages, an interpreted broker at once, a compiled one the next time."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TESTS_ONLY = {"confluent-kafka", "hypothesis", "pyarrow", "pyspark", "pytest", "ruff"}


def pins(lock: str) -> dict[str, str]:
    return dict(re.findall(r"^([\w-]+)==(\S+)", (ROOT / lock).read_text(), re.MULTILINE))


def test_the_small_lock_has_the_broker_and_its_compiler_only() -> None:
    small, large = pins("requirements-run.lock"), pins("requirements.lock")
    needed = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    assert {re.match(r"[\w.-]+", line)[0].replace(".", "-") for line in needed} <= small.keys()  # type: ignore[index]
    assert {"mypy", "setuptools"} <= small.keys()
    assert small.items() <= large.items()
    assert large.keys() - small.keys() >= TESTS_ONLY


def dry(target: str) -> str:
    """What make would do for TARGET in a fresh clone."""
    words = ["make", "--dry-run", "--file", str(ROOT / "Makefile"), "--always-make", target]
    return subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True).stdout


def test_run_installs_no_more_than_the_broker() -> None:
    assert re.findall(r"-r (\S+)", dry("run")) == ["requirements-run.lock"]
    assert "force-reinstall" not in dry("run")  # which compiles


@pytest.mark.parametrize("target", ["quick", "soak"])
def test_tests_and_tools_install_what_they_need(target: str) -> None:
    assert "requirements.lock" in re.findall(r"-r (\S+)", dry(target))


def test_help_begins_with_the_targets_of_every_day() -> None:
    lines = subprocess.check_output(["make", "--no-print-directory", "help"], cwd=ROOT, text=True).splitlines()
    assert [line.split()[0] for line in lines[1:6]] == ["run", "quick", "test", "check", "format"]
    assert {"build", "bench", "dist", "help"} <= {line.split()[0] for line in lines[6:] if line}
    assert max(map(len, lines)) <= 120


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A folder with these sources, where building only tells its process id to `builder`, a pipe, and never ends."""
    os.mkfifo(tmp_path / "builder")
    (tmp_path / "src").symlink_to(ROOT / "src")
    (tmp_path / ".venv").mkdir()
    (tmp_path / "Makefile").write_text(".venv/.built:\n\t@echo $$$$ > builder; exec sleep 1000\n")
    return tmp_path


def start(checkout: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "devtools.run", "--metrics-port", "off", "--set", "listeners=PLAINTEXT://127.0.0.1:0"],
        cwd=checkout,
        env=os.environ | {"PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{ROOT}"},
        stdout=subprocess.PIPE,
        text=True,
    )


def read_until_ready(run: subprocess.Popen[str]) -> list[str]:
    assert run.stdout is not None
    lines: list[str] = []
    while not lines or " ready on " not in lines[-1]:
        line = run.stdout.readline()
        assert line, lines
        lines.append(line)
    return lines


def test_the_first_run_serves_at_once_and_compiles_meanwhile(checkout: Path) -> None:
    with start(checkout) as run:
        assert read_until_ready(run)[0].startswith("running interpreted; compiling in the background")
        builder = int((checkout / "builder").read_text())
        run.send_signal(signal.SIGTERM)
        run.communicate()
    assert run.returncode == 0
    with pytest.raises(ProcessLookupError):
        os.kill(builder, 0)


def test_once_it_is_built_nothing_is_compiled(checkout: Path) -> None:
    (checkout / ".venv/.built").touch()
    with start(checkout) as run:
        assert len(read_until_ready(run)) == 1
        run.send_signal(signal.SIGTERM)
        run.communicate()
    assert run.returncode == 0
