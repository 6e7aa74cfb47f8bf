"""Every run knows whether it tests the compiled or the interpreted package, and stops if it has the other."""

from __future__ import annotations

import os

import pytest

from ixion.cli.main import build_kind


def pytest_configure(config: pytest.Config) -> None:
    expected = os.environ.get("IXION_EXPECT")
    if expected and build_kind() != expected:
        raise pytest.UsageError(f"the tests were to run {expected}, but ixion is {build_kind()}")


def pytest_report_header() -> str:
    return f"ixion: {build_kind()}"
