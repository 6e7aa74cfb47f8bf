"""Shares the tests among forks of the process that collected them: IXION_FORKS=6.

Processes that are started (pytest-xdist) each collect all tests, which takes 4 seconds of processor time. A fork has
the tests already. It runs a file, sends the reports of each test when the test has ended, and gets the next file. The
first process only reports, so it can always fork again: a fork that dies fails the test it was running, and a new one
runs the rest of the file.

Fixtures that a whole session or package shares end with each file, or each row of TOGETHER (shares.py).
"""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import sys
from collections import deque
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.context import ForkProcess
from typing import Any, Final

import pytest

from tests.shares import group_of

FORKS: Final = int(os.environ.pop("IXION_FORKS", "0"))  # not for another pytest, which a test starts
PATIENCE_S: Final = 20  # for a fork that was interrupted to end its fixtures

Reports = list[dict[str, Any]]  # of one test, as pytest makes them ready to be sent


@dataclass(slots=True)
class Fork:
    process: ForkProcess
    connection: Connection
    tests: list[int]  # of the file that it runs, by their places in session.items
    ended: int = field(default=0)  # how many of them


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool | None:
    """In the place of pytest's own loop, which runs the tests one by one; None leaves them to it."""
    option = session.config.option
    if FORKS < 2 or session.testsfailed or option.collectonly or option.usepdb or option.basetemp:
        return None
    groups = [group_of(item.nodeid) for item in session.items]
    waiting = deque(list(tests) for _, tests in groupby(range(len(groups)), groups.__getitem__))
    gc.collect()
    gc.freeze()  # a collection looks at what a test has made, and not at eight thousand tests every time
    forks: dict[Connection, Fork] = {}
    try:
        while waiting or forks:
            while waiting and len(forks) < FORKS:
                fork = begin(session, waiting.popleft(), list(forks))
                forks[fork.connection] = fork
            for connection in wait(list(forks)):
                assert isinstance(connection, Connection)
                listen(session, forks[connection], waiting)
                if connection.closed:
                    del forks[connection]
            if session.shouldfail:
                raise session.Failed(session.shouldfail)
            if session.shouldstop:
                raise session.Interrupted(session.shouldstop)
    finally:
        stop(list(forks.values()))
    return True


def begin(session: pytest.Session, tests: list[int], others: list[Connection]) -> Fork:
    ours, theirs = get_context("fork").Pipe()
    process = get_context("fork").Process(target=work, args=(session, theirs, tests, [ours, *others]))
    sys.stdout.flush()  # or a fork would print it as well
    process.start()
    theirs.close()  # when the process dies, nobody has it
    return Fork(process, ours, tests)


def listen(session: pytest.Session, fork: Fork, waiting: deque[list[int]]) -> None:
    """Pass the reports of one test on; then, if the file has ended, hand out the next one."""
    hook = session.config.hook
    try:
        reports: Reports = fork.connection.recv()
    except (EOFError, OSError):
        fork.connection.close()
        fork.process.join()
        if fork.ended < len(fork.tests):
            died = session.items[fork.tests[fork.ended]]
            report(session, died, [death_of(fork, died)])
            if rest := fork.tests[fork.ended + 1 :]:
                waiting.appendleft(rest)
        return
    test = session.items[fork.tests[fork.ended]]
    report(session, test, [hook.pytest_report_from_serializable(config=session.config, data=each) for each in reports])
    fork.ended += 1
    if fork.ended < len(fork.tests):
        return
    if waiting:
        fork.tests, fork.ended = waiting.popleft(), 0
        with contextlib.suppress(OSError):  # it has died: the next recv says so
            fork.connection.send(fork.tests)
    else:
        fork.connection.close()
        fork.process.join()


def report(session: pytest.Session, test: pytest.Item, reports: list[pytest.TestReport]) -> None:
    hook = session.config.hook
    hook.pytest_runtest_logstart(nodeid=test.nodeid, location=test.location)
    for each in reports:
        hook.pytest_runtest_logreport(report=each)
    hook.pytest_runtest_logfinish(nodeid=test.nodeid, location=test.location)


def death_of(fork: Fork, test: pytest.Item) -> pytest.TestReport:
    """A report of no phase: the first process does not know which one it was in."""
    said = f"the process that ran it ended with {fork.process.exitcode}"
    return pytest.TestReport(test.nodeid, test.location, {}, "failed", said, "???")  # type: ignore[arg-type]


def stop(forks: list[Fork]) -> None:
    """Interrupt those that still run, as Ctrl-C does."""
    for fork in forks:
        fork.connection.close()
        with contextlib.suppress(ProcessLookupError):
            os.kill(fork.process.pid or 0, signal.SIGINT)
    for fork in forks:
        fork.process.join(PATIENCE_S)
        fork.process.kill()
        fork.process.join()


# In a fork


class Outbox:
    """A plugin that keeps the reports of a test until it has ended."""

    def __init__(self, config: pytest.Config) -> None:
        self.reports: Reports = []
        self._config = config

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.reports.append(self._config.hook.pytest_report_to_serializable(config=self._config, report=report))


def work(session: pytest.Session, connection: Connection, tests: list[int], others: list[Connection]) -> None:
    for other in others:  # or no fork would notice that the first process has died
        other.close()
    print_nothing(session.config)
    outbox = Outbox(session.config)
    session.config.pluginmanager.register(outbox)
    try:
        while tests:
            for test, following in pairwise([*(session.items[each] for each in tests), None]):
                assert test is not None
                outbox.reports = []
                session.config.hook.pytest_runtest_protocol(item=test, nextitem=following)
                connection.send(outbox.reports)
            tests = connection.recv()
    except (KeyboardInterrupt, EOFError, OSError):  # the first process has no more tests, or has ended
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches every process, and then the first interrupts too
        session._setupstate.teardown_exact(None)


def print_nothing(config: pytest.Config) -> None:
    """Neither dots nor captured output may go where the first process prints, or into the files that it captures to."""
    capture = config.pluginmanager.getplugin("capturemanager")
    assert capture is not None
    capture.stop_global_capturing()
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.__stdout__.fileno() if sys.__stdout__ else 1)
    os.close(nowhere)
    capture.start_global_capturing()
