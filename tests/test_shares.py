"""The lists of tests name tests that exist, and the tests are shared as they say."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from itertools import chain
from pathlib import Path

import pytest

from tests.shares import (
    ALLOWED,
    BESIDE_THE_BUILD,
    DONE_INTERPRETED,
    LONGEST,
    ONCE,
    SLOW,
    TESTS,
    TOGETHER,
    WAITING,
    group_of,
    is_named,
    may_skip,
    pytest_ignore_collect,
)


@pytest.mark.parametrize("named", [*SLOW, *ONCE, *BESIDE_THE_BUILD, *LONGEST, *WAITING, *chain(*TOGETHER)])
def test_what_is_named_exists(named: str) -> None:
    place, _, test = named.partition("::")
    assert (TESTS / place).exists()
    assert not test or f"def {test}(" in (TESTS / place).read_text()


def test_a_folder_a_file_or_one_test_is_slow() -> None:
    assert is_named("kill/test_kill.py", "test_any", SLOW)
    assert is_named("log/test_machine.py", "runTest", SLOW)
    assert is_named("log/test_mover.py", "test_killed_at_any_step_of_a_move[1-2]", SLOW)
    assert not is_named("log/test_mover.py", "test_another", SLOW)
    assert not is_named("log/test_append.py", "test_any", SLOW)


def test_files_that_share_a_jvm_stay_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.shares.QUICK", False)
    assert group_of("tests/pipelines/test_sinks.py::test_one") == group_of("tests/pipelines/test_loss.py::test_two[3]")
    assert group_of("tests/pipelines/test_kill.py::test_one") == group_of("tests/pipelines/test_many.py::test_two")
    assert group_of("tests/pipelines/test_sinks.py::test_one") != group_of("tests/pipelines/test_kill.py::test_two")
    assert group_of("tests/pipelines/test_cluster.py::test_one") != group_of("tests/pipelines/test_kill.py::test_two")
    assert group_of("tests/metadata/test_image.py::test_one") == group_of("tests/broker/test_zookeeper.py::test_two")
    assert group_of("tests/timer/test_wheel.py::test_one") == "tests/timer/test_wheel.py"
    monkeypatch.setattr("tests.shares.QUICK", True)
    assert group_of("tests/cli/test_help.py::test_one") == "tests/cli/test_help.py"


def test_with_ci_a_test_is_skipped_only_if_the_other_run_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.shares.QUICK", False)
    monkeypatch.setenv("CI", "true")
    assert may_skip("Skipped: compiled functions cannot be watched")
    assert not may_skip("Skipped: no kcat today")
    monkeypatch.setenv("CI", "false")
    assert may_skip("Skipped: no kcat today")


def test_no_pass_leaves_a_test_to_the_other_that_leaves_it_to_this_one() -> None:
    both = [
        named for named in ONCE if any(is_named(named.partition("::")[0], "", [other]) for other in BESIDE_THE_BUILD)
    ]
    assert both + [named for named in BESIDE_THE_BUILD if is_named(named.partition("::")[0], "", ONCE)] == []


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("AGAIN", ["cli", "cli/harness.py", "acl/test_model.py", "kill"]),
        ("COMPILED", ["pipelines"]),
        ("QUICK", ["acl/test_model.py", "kill"]),
        ("", []),
    ],
)
def test_what_a_run_leaves_out_is_not_collected(
    monkeypatch: pytest.MonkeyPatch, kind: str, expected: list[str]
) -> None:
    for each in ("AGAIN", "COMPILED", "QUICK"):
        monkeypatch.setattr(f"tests.shares.{each}", each == kind)
    places = ["cli", "cli/harness.py", "pipelines", "log", "acl/test_model.py", "acl", "kill"]
    assert [place for place in places if pytest_ignore_collect(TESTS / place)] == expected
    assert pytest_ignore_collect(TESTS) is None


@pytest.mark.parametrize(
    ("asked", "code"), [("tests/model", 0), ("tests/model/test_ids.py", 0), ("tests/wire -k nothing_of_this_name", 5)]
)
def test_a_pass_that_has_none_of_the_tests_succeeds(asked: str, code: int) -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *asked.split()],
        cwd=TESTS.parent,
        env={**os.environ, "IXION_AGAIN": "1", "IXION_EXPECT": ""},
        capture_output=True,
        text=True,
    )
    assert ended.returncode == code, ended.stdout


NOT_COMPILED = (
    "a fault replaces functions, which compiled code does not see",
    "compiled code calls its methods directly, and is not interrupted in between",
    "compiled functions cannot be watched",
)


@pytest.mark.parametrize("named", [each for each in ONCE if "::" not in each])
def test_the_compiled_pass_does_not_skip_what_is_left_to_it(named: str) -> None:
    for path in files_of(named):
        assert not [reason for reason in NOT_COMPILED if reason in path.read_text()], path


@pytest.mark.parametrize("named", BESIDE_THE_BUILD)
def test_the_interpreted_pass_does_not_skip_what_is_left_to_it(named: str) -> None:
    for path in files_of(named):
        text = path.read_text()
        assert "done in the compiled one" not in text, path
        assert "once is enough, compiled" not in text, path
        for asked in re.findall(r"\bneed\((.*)\)", text):
            assert asked.endswith("in_both_passes=True"), path
        assert not re.search(r"\b(apache_kafka|zookeeper): ", text), f"{path}: the shared servers are skipped there"


def files_of(named: str) -> list[Path]:
    place = TESTS / named
    return sorted(place.rglob("*.py")) if place.is_dir() else [place]


@pytest.mark.parametrize("reason", sorted(ALLOWED - {DONE_INTERPRETED}))
def test_every_reason_to_skip_is_in_use(reason: str) -> None:
    here = Path(__file__).name
    assert any(reason in path.read_text() for path in TESTS.rglob("*.py") if path.name not in ("shares.py", here)), (
        "nothing is skipped for it any more"
    )
