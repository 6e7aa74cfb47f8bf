"""Forks that share the tests: in runs of pytest of their own, which take three files."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

CONFTEST = "from tests.forks import pytest_runtestloop\n"
GOOD = "def test_one(tmp_path): assert not list(tmp_path.iterdir())\n\ndef test_two(): pass\n"
BAD = "def test_bad():\n    print('said before it failed')\n    assert False, 'on purpose'\n\ndef test_after(): pass\n"
DEAD = "import os, signal\n\ndef test_dead(): os.kill(os.getpid(), signal.SIGKILL)\n\ndef test_after(): pass\n"
ENDLESS = """
import time
from pathlib import Path
import pytest

@pytest.fixture
def held():
    Path(__file__).with_suffix(".begun").touch()
    yield
    time.sleep(0.3)  # long enough for a second interrupt
    Path(__file__).with_suffix(".ended").touch()

def test_endless(held): time.sleep(600)
"""


def test_every_test_runs_once_and_no_file_in_two_processes(tmp_path: Path) -> None:
    note = "import os\nfrom pathlib import Path\n\ndef note(name):\n    with (Path(__file__).parent / 'seen').open('a')"
    note += " as seen: seen.write(f'{Path(__file__).name} {name} {os.getpid()}\\n')\n\n"
    tests = note + "def test_one(): note('one')\n\ndef test_two(): note('two')\n"
    code, said = run(tmp_path, tests, tests, tests)
    assert (code, said.splitlines()[-1].partition(" in ")[0]) == (0, "6 passed")
    seen = [line.rsplit(" ", 1) for line in (tmp_path / "seen").read_text().splitlines()]
    assert sorted(what for what, _ in seen) == [f"test_{file}.py {name}" for file in "abc" for name in ("one", "two")]
    assert len({(what.split()[0], process) for what, process in seen}) == 3
    assert 1 < len({process for _, process in seen}) <= 2


def test_a_failure_is_reported_with_what_the_test_printed(tmp_path: Path) -> None:
    code, said = run(tmp_path, GOOD, BAD, GOOD)
    assert (code, said.splitlines()[-1].partition(" in ")[0]) == (1, "1 failed, 5 passed")
    assert "AssertionError: on purpose" in said
    assert said.count("said before it failed") == 2, "in the traceback's source and in what was captured"


def test_a_process_that_dies_fails_its_test_and_another_runs_the_rest_of_the_file(tmp_path: Path) -> None:
    code, said = run(tmp_path, DEAD, GOOD, DEAD)
    assert (code, said.splitlines()[-1].partition(" in ")[0]) == (1, "2 failed, 4 passed")
    assert said.count("the process that ran it ended with -9") >= 2


def test_the_first_failure_ends_the_run_if_asked(tmp_path: Path) -> None:
    code, said = run(tmp_path, ENDLESS, BAD, GOOD, words=["-x"])
    assert code == 1, said
    assert "stopping after 1 failures" in said
    assert not (tmp_path / "test_a.begun").exists() or (tmp_path / "test_a.ended").exists(), "fixtures are ended"


def test_nothing_runs_if_a_file_cannot_be_collected(tmp_path: Path) -> None:
    code, said = run(tmp_path, "import nothing_of_this_name", GOOD)
    assert code == pytest.ExitCode.INTERRUPTED, said
    assert "passed" not in said


def test_an_interrupt_ends_every_process_and_its_fixtures(tmp_path: Path) -> None:
    write(tmp_path, ENDLESS, ENDLESS)
    run = subprocess.Popen(
        command(), cwd=tmp_path, env=environment(), stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    begun = [tmp_path / f"test_{file}.begun" for file in "ab"]
    while not all(path.exists() for path in begun):
        assert run.poll() is None, run.communicate()[0]
        time.sleep(0.01)
    os.killpg(run.pid, signal.SIGINT)
    said, _ = run.communicate(timeout=120)
    assert run.returncode == pytest.ExitCode.INTERRUPTED, said
    assert all(path.with_suffix(".ended").exists() for path in begun)
    with pytest.raises(ProcessLookupError):
        os.killpg(run.pid, 0)


def run(folder: Path, *files: str, words: list[str] | None = None) -> tuple[int, str]:
    """The exit code, and what was printed, of a run with two forks."""
    write(folder, *files)
    ended = subprocess.run(
        command(*(words or [])), cwd=folder, env=environment(), capture_output=True, text=True, timeout=120
    )
    return ended.returncode, ended.stdout + ended.stderr


def write(folder: Path, *files: str) -> None:
    (folder / "pytest.ini").write_text("[pytest]\n")
    (folder / "conftest.py").write_text(CONFTEST)
    for name, text in zip("abc", files, strict=False):
        (folder / f"test_{name}.py").write_text(text)


def command(*words: str) -> list[str]:
    return [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *words]


def environment() -> dict[str, str]:
    root = str(Path(__file__).parents[1])
    return {**os.environ, "IXION_FORKS": "2", "PYTHONPATH": os.pathsep.join([root, *sys.path]), "IXION_EXPECT": ""}
