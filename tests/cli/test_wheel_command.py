"""`ixion wheel` as its users meet it: in a pipe, in a real terminal, with options that make no sense."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import termios
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from ixion.cli.app import execute

IXION = [sys.executable, "-m", "ixion"]
ENTER, LEAVE, HIDE, SHOW = b"\x1b[?1049h", b"\x1b[?1049l", b"\x1b[?25l", b"\x1b[?25h"
SUMMARY = re.compile(
    r"[\d.]+ s: ([\d,]+) tasks added, [\d,.]+ a second\r?\n"
    r"([\d,]+) ran, ([\d,]+) cancelled, ([\d,]+) still waited; [\d,]+ falls between \d levels\r?\n"
    r"late p50 [\d.]+ ms, p99 [\d.]+ ms, latest [\d.]+ ms; CPU \d+ %.*\r?\n$"
)


def environment(**changes: str) -> dict[str, str]:
    """The tests' own, without what would tell rich about colours."""
    kept = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "FORCE_COLOR", "COLUMNS", "LINES")}
    return kept | {"TERM": "xterm-256color"} | changes


def check_summary(output: str) -> None:
    found = SUMMARY.search(output)
    assert found, output
    added, ran, cancelled, waited = [int(number.replace(",", "")) for number in found.groups()]
    assert added == ran + cancelled + waited
    assert ran > 0


def test_in_a_pipe_it_prints_plain_lines_and_ends_by_itself() -> None:
    done = subprocess.run(
        [*IXION, "wheel", "--seconds", "1", "--rate", "2000"],
        capture_output=True,
        text=True,
        env=environment(FORCE_COLOR="1"),
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "\x1b" not in done.stdout
    assert re.match(r" +\d+ s  [\d,]+ waiting \(\d+( \+ \d+)*\); a second: [\d,]+ added, ", done.stdout)
    check_summary(done.stdout)


@contextmanager
def piped(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    """`ixion` with its output in pipes; gone at the end of the block, whatever happens in it."""
    pipe = subprocess.PIPE
    process = subprocess.Popen([*IXION, *arguments], stdout=pipe, stderr=pipe, text=True, env=environment())
    with process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_in_a_pipe_a_signal_ends_it_cleanly(number: signal.Signals) -> None:
    with piped("wheel", "--rate", "2000") as process:
        assert process.stdout
        first = process.stdout.readline()
        process.send_signal(number)
        check_summary(first + process.stdout.read())
        assert process.wait(60) == 0


def test_a_reader_that_leaves_early_gets_no_traceback() -> None:
    with piped("wheel") as process:
        assert process.stdout
        assert process.stderr
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == ""


class Terminal:
    """A real one, 80 by 24, with `ixion` running in it."""

    def __init__(self, *arguments: str, **variables: str) -> None:
        self.master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        self.settings = termios.tcgetattr(slave)
        self.process = subprocess.Popen(
            [*IXION, *arguments], stdin=slave, stdout=slave, stderr=slave, env=environment(**variables)
        )
        self.slave = slave  # kept open, so that the settings can be read after the process has gone
        self.output = b""

    def read_until(self, seen: Callable[[bytes], bool]) -> None:
        while not seen(self.output):
            self.output += os.read(self.master, 65536)

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self.master)
        os.close(self.slave)


@pytest.mark.parametrize("ending", ["SIGINT", "SIGTERM", "--seconds"])
def test_a_terminal_is_given_back_as_it_was(ending: str) -> None:
    options = ("--seconds", "1") if ending == "--seconds" else ()
    terminal = Terminal("wheel", "--rate", "2000", *options)
    try:
        terminal.read_until(lambda output: output.count(b"level 1") >= 3)  # it moves
        if not options:
            terminal.process.send_signal(signal.Signals[ending])
        terminal.read_until(lambda output: SUMMARY.search(output.decode(errors="replace")) is not None)
        assert terminal.process.wait(60) == 0
        assert termios.tcgetattr(terminal.slave) == terminal.settings
    finally:
        terminal.close()
    output = terminal.output
    assert (output.count(ENTER), output.count(LEAVE)) == (1, 1)
    picture, after = output.split(LEAVE)
    assert picture.index(ENTER) < picture.index(b"level 1")
    assert output.rindex(HIDE) < output.rindex(SHOW)
    assert b"\x1b" not in after.replace(SHOW, b"")
    check_summary(after.decode())


def test_a_terminal_that_can_not_draw_gets_lines() -> None:
    terminal = Terminal("wheel", "--rate", "2000", "--seconds", "1", TERM="dumb")
    try:
        terminal.read_until(lambda output: SUMMARY.search(output.decode()) is not None)
        assert terminal.process.wait(60) == 0
    finally:
        terminal.close()
    assert b"\x1b" not in terminal.output
    assert b"waiting" in terminal.output


def test_no_thread_and_no_signal_handler_is_left() -> None:
    threads, handler = set(threading.enumerate()), signal.getsignal(signal.SIGINT)
    assert execute(["wheel", "--seconds", "0.3", "--rate", "2000"]) == 0
    assert set(threading.enumerate()) == threads
    assert signal.getsignal(signal.SIGINT) is handler


@pytest.mark.parametrize(
    ("option", "value", "complaint"),
    [
        ("--rate", "0", "--rate must be from 1 to 100000 tasks per second, not 0"),
        ("--rate", "1000000", "--rate must be from 1 to 100000 tasks per second, not 1000000"),
        ("--cancel", "1.5", "--cancel must be a fraction from 0 to 1, not 1.5"),
        ("--cancel", "nan", "--cancel must be a number, not 'nan'"),
        ("--seconds", "-1", "--seconds must be more than 0, not -1"),
        ("--seconds", "nan", "--seconds must be a number, not 'nan'"),
        ("--fps", "0", "--fps must be from 1 to 60, not 0"),
    ],
)
def test_an_option_that_makes_no_sense_is_refused_in_one_line(
    option: str, value: str, complaint: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert execute(["wheel", option, value]) == 2
    assert capsys.readouterr() == ("", f"ixion wheel: {complaint} (see ixion wheel --help)\n")
