"""A few failing tests run again, alone: in runs of pytest of their own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(
    os.environ.get("IXION_EXPECT") == "interpreted",
    reason="the same in both runs; done in the compiled one",
)

CONFTEST = """
from tests.forks import pytest_runtestloop
from tests.unsteady import pytest_sessionfinish, pytest_terminal_summary
"""
SECOND_TIME = """
from pathlib import Path

def second_time(name):
    seen = Path(__file__).parent / name
    if seen.exists():
        return True
    seen.touch()
    return False
"""
STEADY = "def test_good(): pass\n\ndef test_bad(): assert False, 'on purpose'\n"
IN_THE_TEST = "def test_in_the_test(): assert second_time('a'), 'the first time'\n"
AFTER_THE_TEST = """
import pytest

@pytest.fixture
def broken_after():
    yield
    assert second_time('b')

def test_after_the_test(broken_after): assert second_time('c')
"""


@pytest.mark.parametrize("forks", [0, 2])
def test_a_run_succeeds_if_every_failed_test_passes_alone(tmp_path: Path, forks: int) -> None:
    code, said = run(tmp_path, SECOND_TIME + IN_THE_TEST + AFTER_THE_TEST + "def test_good(): pass\n", forks=forks)
    assert code == 0, said
    assert "unsteady: passed only when run again: test_it.py::test_in_the_test, test_it.py::test_after_the_test" in said
    assert "AssertionError: the first time" in said
    last = said.splitlines()[-1]
    assert last.startswith("1 passed, 2 unsteady in "), "both failures of a test are one"


def test_a_test_that_fails_twice_fails_the_run(tmp_path: Path) -> None:
    code, said = run(tmp_path, SECOND_TIME + IN_THE_TEST + STEADY)
    assert code == 1, said
    assert "unsteady: passed only when run again: test_it.py::test_in_the_test" in said
    assert said.splitlines()[-1].startswith("1 failed, 1 passed, 1 unsteady in ")


def test_a_test_that_is_skipped_the_second_time_has_not_passed(tmp_path: Path) -> None:
    skips = "import pytest\ndef test_skips():\n    if second_time('a'): pytest.skip('now')\n    assert False\n"
    code, said = run(tmp_path, SECOND_TIME + skips)
    assert code == 1, said
    assert said.splitlines()[-1].startswith("1 failed in ")


def test_more_failures_than_allowed_are_left_alone(tmp_path: Path) -> None:
    many = "import pytest\n@pytest.mark.parametrize('n', range(3))\ndef test_many(n): assert second_time(str(n))\n"
    code, said = run(tmp_path, SECOND_TIME + many, most=2)
    assert (code, "once more" in said) == (1, False), said


def test_a_crash_is_never_forgiven(tmp_path: Path) -> None:
    dies = "import os\ndef test_dies():\n    if not second_time('a'): os._exit(3)\n"
    code, said = run(tmp_path, SECOND_TIME + dies, forks=2)
    assert (code, "once more" in said) == (1, False), said
    assert "1 failed" in said.splitlines()[-1]


def test_a_file_that_cannot_be_read_is_not_tried_again(tmp_path: Path) -> None:
    code, said = run(tmp_path, SECOND_TIME + "assert second_time('a')\n" + STEADY)
    assert (code, "once more" in said) == (2, False), said


def test_a_run_that_was_stopped_early_stays_failed(tmp_path: Path) -> None:
    code, said = run(tmp_path, SECOND_TIME + IN_THE_TEST + STEADY, "-x")
    assert (code, "once more" in said) == (1, False), said


def test_without_the_variable_nothing_runs_again(tmp_path: Path) -> None:
    code, said = run(tmp_path, SECOND_TIME + IN_THE_TEST, most=0)
    assert (code, "once more" in said) == (1, False), said


def run(folder: Path, tests: str, *words: str, forks: int = 0, most: int = 5) -> tuple[int, str]:
    (folder / "test_it.py").write_text(tests)
    (folder / "conftest.py").write_text(CONFTEST)
    (folder / "pytest.ini").write_text("[pytest]\naddopts = -q\n")
    here = str(Path(__file__).parent.parent)
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *words],
        cwd=folder,
        env={name: value for name, value in os.environ.items() if not name.startswith(("PYTEST", "IXION", "CI"))}
        | {"IXION_RERUN": str(most), "IXION_FORKS": str(forks)}
        | {"PYTHONPATH": here, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    return ended.returncode, ended.stdout.strip() + ended.stderr
