"""What people see in a terminal: tables with rules, a line that shows progress, lines sent as they are typed."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
import termios
from collections.abc import Iterator
from pathlib import Path

import pytest

from ixion.testing import Broker
from tests.cli.harness import Ixion

IXION = [sys.executable, "-m", "ixion"]


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    """Ixion's own only: a terminal is no question of the broker."""
    with Broker() as broker:
        broker.create_topic("orders", 3)
        yield broker


def in_terminal(broker: Broker, *words: str) -> str:
    """All that the command writes, its errors included, on a terminal."""
    ours, theirs = pty.openpty()
    environment = {**os.environ, "IXION_BOOTSTRAP": broker.bootstrap, "TERM": "xterm", "COLUMNS": "80"}
    process = subprocess.Popen([*IXION, *words], stdin=theirs, stdout=theirs, stderr=theirs, env=environment)
    os.close(theirs)
    written = read_all(ours)
    os.close(ours)
    assert process.wait(30) == 0, written
    return written


def read_all(terminal: int) -> str:
    written = b""
    while True:
        try:
            written += (piece := os.read(terminal, 65536))
        except OSError:  # how a terminal ends
            break
        if not piece:
            break
    return written.decode()


def test_a_table_has_rules(broker: Broker) -> None:
    shown = in_terminal(broker, "topic", "list")
    assert "─────" in shown
    assert "TOPIC" not in shown
    assert "orders" in shown


@pytest.mark.parametrize("words", [["--help"], ["consume", "-h"], ["help", "offsets"]], ids=" ".join)
@pytest.mark.parametrize("columns", [80, 132])
def test_help_fits_the_terminal(words: list[str], columns: int) -> None:
    """By the size of the window, not by a variable."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (40, columns))
    surroundings = {name: value for name, value in os.environ.items() if name != "COLUMNS"}
    with subprocess.Popen([*IXION, *words], stdin=theirs, stdout=theirs, stderr=theirs, env=surroundings) as process:
        os.close(theirs)
        shown = read_all(ours)
    os.close(ours)
    assert process.returncode == 0
    lines = shown.replace("\r", "").splitlines()
    widest = max(map(len, lines))
    assert 60 < widest <= min(columns, 100)
    assert "\x1b" not in shown


def test_progress_is_shown_and_wiped_away(broker: Broker) -> None:
    shown = in_terminal(broker, "perf", "produce", "orders", "--records", "2000", "--rate", "4000")
    first, *_, wiped, result, times, _ = shown.split("\r")[1:]
    assert " of 2,000 (" in first
    assert wiped.isspace()
    assert result.startswith("produced 2,000 records in ")
    assert times.startswith("\nacknowledgement, ms: mean ")


def produce(broker: Broker) -> subprocess.Popen[bytes]:
    command = [*IXION, "produce", "orders", "--partition", "0", "--bootstrap", broker.bootstrap]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE)


@pytest.fixture
def ixion(
    broker: Broker, capfdbinary: pytest.CaptureFixture[bytes], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Ixion:
    return Ixion(broker.bootstrap, capfdbinary, monkeypatch, tmp_path)


def test_a_line_is_sent_while_the_next_is_being_thought_of(broker: Broker, ixion: Ixion) -> None:
    with produce(broker) as process:
        assert process.stdin
        process.stdin.write(b"typed\nha")
        process.stdin.flush()
        while "typed" not in ixion("consume", "orders", "-p", "0", "--exit-at-end").split():
            pass
        assert process.poll() is None
        process.stdin.write(b"lf")
        process.stdin.close()
        assert process.wait(20) == 0
    assert "half" in ixion("consume", "orders", "-p", "0", "--exit-at-end").split()


def test_ctrl_c_leaves_nothing_unsent(broker: Broker, ixion: Ixion) -> None:
    with produce(broker) as process:
        assert process.stdin
        assert process.stderr
        process.stdin.write(b"before\n")
        process.stdin.flush()
        while "before" not in ixion("consume", "orders", "-p", "0", "--exit-at-end").split():
            pass
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 130
        assert process.stderr.read() == b""


def test_a_prompt_where_lines_are_typed(broker: Broker) -> None:
    ours, theirs = pty.openpty()
    environment = {**os.environ, "IXION_BOOTSTRAP": broker.bootstrap, "TERM": "xterm"}
    command = [*IXION, "produce", "orders"]
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment)
    os.close(theirs)
    os.write(ours, b"typed\n\x04")  # and Ctrl-D
    written = read_all(ours)
    os.close(ours)
    assert process.wait(30) == 0, written
    assert "ixion: a line is a record; Ctrl-D ends\r\n> " in written
    assert written.count("> ") == 2


@pytest.mark.parametrize(("answer", "code"), [("y", 0), ("", 1), ("no", 1)])
def test_in_a_terminal_it_asks_before_it_deletes(broker: Broker, answer: str, code: int) -> None:
    name = f"precious-{answer or 'nothing'}"
    broker.create_topic(name)
    ours, theirs = pty.openpty()
    environment = {**os.environ, "IXION_BOOTSTRAP": broker.bootstrap, "TERM": "xterm"}
    command = [*IXION, "topic", "delete", name]
    process = subprocess.Popen(command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment)
    os.close(theirs)
    os.write(ours, f"{answer}\n".encode())
    written = read_all(ours)
    os.close(ours)
    assert process.wait(30) == code, written
    assert f"This will delete {name} and all records in it. Continue? [y/N] " in written
    assert ("ixion: nothing was done" in written) == (code == 1)
