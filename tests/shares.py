"""Which tests take the time: those marked `slow`, those that need a JVM or Spark, and the rest.

A test is marked `slow` by hand if it takes seconds on a quiet machine. `spark` is every test with the fixture
`spark_parts`. `jvm` need not be marked: `devtools.parts.need` notes when a test asks for one, so none is forgotten.
`make quick` (IXION_QUICK) skips all three; every run ends with the time that each took.
"""

from __future__ import annotations

import os
from collections import Counter, defaultdict
from collections.abc import Generator

import pytest

from devtools import parts

QUICK = bool(os.environ.get("IXION_QUICK"))
KINDS = ("spark", "jvm", "slow")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if "spark_parts" in getattr(item, "fixturenames", ()):
            item.add_marker("spark")
        for kind in KINDS:
            if QUICK and item.get_closest_marker(kind):
                item.add_marker(pytest.mark.skip(reason=parts.left_out(kind)))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if parts.jvm_asked:
        parts.jvm_asked.clear()
        item.user_properties.append(("kind", "jvm"))
        report.user_properties = item.user_properties
    return report


def kind_of(report: pytest.TestReport) -> str:
    if report.skipped and isinstance(report.longrepr, tuple):
        return next((kind for kind in KINDS if parts.left_out(kind) in report.longrepr[2]), "rest")
    if ("kind", "jvm") in report.user_properties:
        return "jvm"
    return next((kind for kind in KINDS if kind in report.keywords), "rest")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    seconds: dict[str, float] = defaultdict(float)
    tests: Counter[str] = Counter()
    kinds: dict[str, str] = {}  # of a test, of whose phases only one asked for a JVM
    reports = [each for some in terminalreporter.stats.values() for each in some if isinstance(each, pytest.TestReport)]
    for report in reports:
        if kinds.get(report.nodeid, "rest") == "rest":
            kinds[report.nodeid] = kind_of(report)
    for report in reports:
        seconds[kinds[report.nodeid]] += report.duration
    tests.update(kinds.values())
    said = [f"{kind} {tests[kind]:,} in {seconds[kind]:,.0f} s" for kind in (*KINDS, "rest") if tests[kind]]
    left = " (make quick skips spark, jvm and slow)" if QUICK else ""
    terminalreporter.write_line(f"tests by kind{left}: {', '.join(said)}")
