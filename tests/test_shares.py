"""The list of slow tests names tests that there are."""

from __future__ import annotations

import pytest

from tests.shares import SLOW, TESTS, TOGETHER, group_of, is_slow


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
    assert (
        group_of(TESTS / "pipelines" / "test_sinks.py") == group_of(TESTS / "pipelines" / "test_kill.py") == "pipelines"
    )
    assert group_of(TESTS / "timer" / "test_wheel.py") == "timer/test_wheel.py"
    assert all((TESTS / folder).is_dir() for folder in TOGETHER)
