"""The list of slow tests names tests that there are."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.shares import ALLOWED, SLOW, TESTS, TOGETHER, group_of, is_slow, may_skip


@pytest.mark.parametrize("named", SLOW)
def test_what_is_named_slow_exists(named: str) -> None:
    place, _, test = named.partition("::")
    assert (TESTS / place).exists()
    assert not test or f"def {test}(" in (TESTS / place).read_text()


def test_a_folder_a_file_or_one_test_is_slow() -> None:
    assert is_slow("kill/test_kill.py", "test_any")
    assert is_slow("log/test_machine.py", "runTest")
    assert is_slow("log/test_mover.py", "test_killed_at_any_step_of_a_move[1-2]")
    assert not is_slow("log/test_mover.py", "test_another")
    assert not is_slow("log/test_append.py", "test_any")


def test_a_folder_with_a_jvm_of_its_own_stays_together() -> None:
    assert group_of("tests/pipelines/test_sinks.py::test_one") == group_of("tests/pipelines/test_kill.py::test_two[3]")
    assert group_of("tests/timer/test_wheel.py::test_one") == "tests/timer/test_wheel.py"
    assert all((TESTS / folder).is_dir() for folder in TOGETHER)


def test_with_ci_a_test_is_skipped_only_if_the_other_run_has_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.shares.QUICK", False)
    monkeypatch.setenv("CI", "true")
    assert may_skip("Skipped: compiled functions cannot be watched")
    assert not may_skip("Skipped: no kcat today")
    monkeypatch.setenv("CI", "false")
    assert may_skip("Skipped: no kcat today")


@pytest.mark.parametrize("reason", sorted(ALLOWED))
def test_every_reason_to_skip_is_in_use(reason: str) -> None:
    here = Path(__file__).name
    assert any(reason in path.read_text() for path in TESTS.rglob("*.py") if path.name not in ("shares.py", here)), (
        "nothing is skipped for it any more"
    )
