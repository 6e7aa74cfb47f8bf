"""SIGTERM and SIGHUP end a command as Ctrl-C does: it commits, leaves its group, and removes unfinished files."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.harness import Ixion
from tests.cli.test_consume_group import described, filled, member, read

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

# `ixion read` stands still after its file is opened, until a signal comes.
STANDING = """
import signal, sys
import ixion.cli.read.commands as command
from ixion.cli.main import run

def stand_still(*_given):
    print("begun", flush=True)
    signal.pause()

command.copy = stand_still
sys.argv = ["ixion", "read", *sys.argv[1:]]
run()
"""


def started(*words: str) -> subprocess.Popen[str]:
    pipe = subprocess.PIPE
    return subprocess.Popen([sys.executable, *words], stdin=pipe, stdout=pipe, stderr=pipe, text=True)


@pytest.mark.parametrize("number", ENDING)
def test_a_member_commits_and_leaves(ixion: Ixion, number: signal.Signals) -> None:
    topic = filled(ixion, 1, 5)
    group = f"{topic}-group"
    with member(topic, group) as process:
        assert read(process, 5) == [f"0-{at}" for at in range(5)]
        process.send_signal(number)
        _, errors = process.communicate(timeout=60)
        assert (process.returncode, errors) == (0, "")
    assert described(ixion, group) == ("Empty", 0, [5])


@pytest.mark.parametrize("number", ENDING)
def test_a_command_that_was_to_end_by_itself_says_that_it_did_not(ixion: Ixion, number: signal.Signals) -> None:
    topic = filled(ixion, 1, 2)
    with started("-m", "ixion", "consume", topic, "-n", "3") as process:
        assert read(process, 2) == ["0-0", "0-1"]
        process.send_signal(number)
        assert process.communicate(timeout=60) == ("", "")
        assert process.returncode == 128 + number


@pytest.mark.parametrize("number", ENDING)
def test_an_unfinished_file_is_removed(ixion: Ixion, tmp_path: Path, number: signal.Signals) -> None:
    target = tmp_path / "files" / "records.csv"
    target.parent.mkdir()
    with started("-c", STANDING, filled(ixion, 1, 2), "--to", str(target)) as process:
        assert read(process, 1) == ["begun"]
        assert len(list(target.parent.iterdir())) == 1
        process.send_signal(number)
        assert process.communicate(timeout=60) == ("", "")
        assert process.returncode == 128 + number
    assert list(target.parent.iterdir()) == []


def test_what_nohup_ignores_stays_ignored(ixion: Ixion) -> None:
    topic = filled(ixion, 1, 1)
    with started(
        *(
            "-c",
            "import os, signal, sys; signal.signal(signal.SIGHUP, signal.SIG_IGN); os.execv(sys.argv[1], sys.argv[1:])",
        ),
        *(sys.executable, "-m", "ixion", "consume", topic),
    ) as process:
        assert read(process, 1) == ["0-0"]
        process.send_signal(signal.SIGHUP)
        ixion("produce", topic, stdin="more\n")
        assert read(process, 1) == ["more"]
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
        assert process.returncode == 0
