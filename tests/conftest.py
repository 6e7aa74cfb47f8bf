"""Every run knows whether it tests the compiled or the interpreted package, and stops if it has the other."""

from __future__ import annotations

import os
import signal

import pytest
from hypothesis import HealthCheck, settings

from ixion.cli.main import build_kind
from ixion.testing import plugin
from tests import forks, unsteady
from tests.servers import apache_kafka, zookeeper
from tests.shares import (
    pytest_collection_modifyitems,
    pytest_ignore_collect,
    pytest_runtest_makereport,
    pytest_sessionfinish,
    pytest_terminal_summary,
)

__all__ = [
    "apache_kafka",
    "pytest_collection_modifyitems",
    "pytest_ignore_collect",
    "pytest_runtest_makereport",
    "pytest_sessionfinish",
    "pytest_terminal_summary",
    "zookeeper",
]

# How long an example takes says more about what else the machine has to do than about the code.
settings.register_profile("ixion", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("ixion")


def pytest_configure(config: pytest.Config) -> None:
    # A shell that starts the tests in the background has SIGINT ignored, and so would every command that a test starts
    # and then interrupts.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    # No process that a test starts leaves another one behind, which makes an archive of Java's classes for next time.
    os.environ["IXION_CLASS_ARCHIVES"] = "off"
    config.pluginmanager.register(unsteady, "unsteady")
    config.pluginmanager.register(forks, "forks")
    if not config.pluginmanager.has_plugin("ixion"):  # beside a first build it is not installed yet
        config.pluginmanager.register(plugin, "ixion")
    expected = os.environ.get("IXION_EXPECT")
    if expected and build_kind() != expected:
        raise pytest.UsageError(f"the tests were to run {expected}, but ixion is {build_kind()}")


def pytest_report_header() -> str:
    return f"ixion: {build_kind()}"
