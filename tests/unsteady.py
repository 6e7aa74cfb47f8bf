"""Runs the few tests that failed once more, alone, and names those that pass then.

Several processes share the tests and the machine has other things to do, so a test that waits too little fails now and
then. Such a test is a fault, but it says nothing about the change under test. `make test` therefore sets IXION_RERUN=5:
if at most five tests fail, each of them runs again, in a process of its own, after all others have ended. The run
succeeds if each passes then, and its closing lines name them as unsteady. A test that fails twice fails the run.

Nothing is run again if more tests failed, if a process of the tests crashed, if a file could not be collected, or if
the run was stopped early. A test that is skipped the second time has not passed.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Generator
from pathlib import Path
from xml.etree import ElementTree

import pytest

MOST = int(os.environ.get("IXION_RERUN", "0"))
PHASES = ("setup", "call", "teardown")
UNSTEADY = "unsteady"
SECONDS = 900  # a test that hangs is ended by pytest-timeout; this is for one that does not end even then


@pytest.hookimpl(wrapper=True, trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> Generator[None, object, object]:
    """As the innermost wrapper: after the other processes have ended, before the summary is written."""
    result = yield
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None:
        return result
    failed = tests_to_repeat(reporter, session)
    if not failed:
        return result
    reporter.write_line(f"\n{len(failed)} failed; running each of them once more, alone")
    unsteady = [nodeid for nodeid in failed if passes_alone(nodeid, session.config, reporter)]
    set_aside(reporter, unsteady)
    if unsteady == failed:
        session.exitstatus = pytest.ExitCode.OK
    return result


def tests_to_repeat(reporter: pytest.TerminalReporter, session: pytest.Session) -> list[str]:
    """The tests that failed, if it makes sense to run them again."""
    if session.exitstatus != pytest.ExitCode.TESTS_FAILED or session.shouldfail or session.shouldstop:
        return []
    reports = [report for outcome in ("failed", "error") for report in reporter.stats.get(outcome, [])]
    # A file that was not collected has a CollectReport; a process that crashed a report of no phase.
    if any(not isinstance(report, pytest.TestReport) or report.when not in PHASES for report in reports):
        return []
    failed = list(dict.fromkeys(report.nodeid for report in reports))
    return failed if len(failed) <= MOST else []


def passes_alone(nodeid: str, config: pytest.Config, reporter: pytest.TerminalReporter) -> bool:
    with tempfile.TemporaryDirectory() as folder:
        results = Path(folder) / "results.xml"
        command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", f"--junit-xml={results}", nodeid]
        try:
            ended = subprocess.run(
                command,
                cwd=config.rootpath,
                env={name: value for name, value in os.environ.items() if name != "IXION_RERUN"},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                timeout=SECONDS,
            )
        except subprocess.TimeoutExpired:
            reporter.write_line(f"failed again: {nodeid} did not end within {SECONDS} s")
            return False
        if ended.returncode == 0 and has_passed(results):
            reporter.write_line(f"passed now: {nodeid}")
            return True
        reporter.write_line(f"failed again: {nodeid}\n{ended.stdout}")
        return False


def has_passed(results: Path) -> bool:
    """Whether pytest's results in JUnit's format are of exactly one test, and that it passed."""
    cases = list(ElementTree.parse(results).getroot().iter("testcase"))
    return len(cases) == 1 and all(cases[0].find(word) is None for word in ("failure", "error", "skipped"))


def set_aside(reporter: pytest.TerminalReporter, unsteady: list[str]) -> None:
    """Counts tests as unsteady and no longer as failed. A test counts once, even if its teardown failed as well."""
    counted: dict[str, pytest.TestReport] = {}
    for outcome in ("failed", "error"):
        for report in reporter.stats.pop(outcome, []):
            if report.nodeid not in unsteady:
                reporter.stats.setdefault(outcome, []).append(report)
            elif report.nodeid in counted:
                counted[report.nodeid].sections.append((report.when, report.longreprtext))
            else:
                counted[report.nodeid] = report
    if counted:
        reporter.stats[UNSTEADY] = list(counted.values())


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reports = terminalreporter.stats.get(UNSTEADY, [])
    if not reports:
        return
    for report in reports:
        terminalreporter.write_sep("_", f"unsteady: {report.nodeid} ({report.when})")
        terminalreporter.write_line(report.longreprtext)
        for title, text in report.sections:
            terminalreporter.write_line(f"{title}:\n{text}")
    named = ", ".join(report.nodeid for report in reports)
    terminalreporter.write_line(f"unsteady: passed only when run again: {named}")
