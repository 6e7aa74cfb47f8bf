"""Completion: what is offered where, and that bash, zsh and fish really complete with it."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from devtools.parts import need
from ixion.cli import completion
from ixion.cli.app import COMMANDS, execute
from ixion.cli.completion import FILES, SHELLS, candidates
from ixion.testing import Broker
from tests.cli.shell import Shell, environment


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        broker.create_topic("orders", 1)
        broker.create_topic("payments", 1)
        yield broker


def offered(*words: str) -> list[str]:
    return [value for value, _ in candidates(list(words))]


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["con"], ["consume", "config"]),
        (["topic", "de"], ["describe", "delete-records", "delete"]),
        (["-b", "host:1", "topic", "al"], ["alter"]),
        (["topic", "-b", "host:1", "al"], ["alter"]),
        (["produce", "t", "--ac"], ["--acks"]),
        (["produce", "t", "--acks", ""], ["all", "1", "0"]),
        (["produce", "t", "--acks="], ["--acks=all", "--acks=1", "--acks=0"]),
        (["produce", "t", "--no"], ["--no-create"]),
        (["produce", "t", ""], [FILES]),
        (["dump", ""], [FILES]),
        (["serve", "--set", "num.part"], ["num.partitions="]),
        (["serve", "--log-level", "d"], ["debug"]),
        (["help", "form"], ["formats"]),
        (["completion", ""], ["bash", "zsh", "fish"]),
        (["config", "get", "lo"], ["logger"]),
        (["frobnicate", ""], []),
        (["topic", "frobnicate", ""], []),
        (["--vers"], ["--version"]),
    ],
)
def test_what_is_offered(words: list[str], expected: list[str]) -> None:
    assert offered(*words) == expected


def test_all_commands_are_offered_and_no_option_before_a_dash() -> None:
    assert offered("") == list(COMMANDS)
    assert "--bootstrap" in offered("-")


def test_names_come_from_the_cluster(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(completion, "PATIENCE_S", 60.0)  # a busy machine takes longer than a person waits
    monkeypatch.setenv("IXION_BOOTSTRAP", broker.bootstrap)
    assert offered("topic", "describe", "") == ["orders", "payments"]
    assert offered("consume", "pay") == ["payments"]
    assert offered("consume", "orders", "--group", "") == []
    assert offered("config", "get", "topic", "o") == ["orders"]
    assert offered("config", "get", "broker", "") == ["1001", "default"]
    assert offered("config", "get", "logger", "") == ["1001"]
    assert offered("config", "get", "group", "") == []
    monkeypatch.setenv("IXION_BOOTSTRAP", "127.0.0.1:1")
    assert offered("topic", "describe", "") == []
    assert offered("-b", broker.bootstrap, "topic", "describe", "o") == ["orders"]


def test_the_answer_to_a_shell(capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["__complete", "bash", "whe"]) == 0
    assert capsys.readouterr().out == "wheel\n"
    assert execute(["__complete", "fish", "whe"]) == 0
    assert capsys.readouterr().out == "wheel\tWatch a live timing wheel.\n"


def test_a_shell_without_completion(capsys: pytest.CaptureFixture[str]) -> None:
    assert execute(["completion", "tcsh"]) == 2
    assert "completion is for bash, zsh and fish, not for 'tcsh'" in capsys.readouterr().err
    for shell in SHELLS:
        assert execute(["completion", shell]) == 0
        assert "ixion __complete" in capsys.readouterr().out


START = {
    "bash": (["bash", "--norc", "--noprofile", "-i"], 'eval "$(ixion completion bash)"; echo rea""dy\n'),
    "zsh": (
        ["zsh", "-f", "-i"],
        'autoload -U compinit; compinit -u -D; eval "$(ixion completion zsh)"; echo rea""dy\n',
    ),
}


@pytest.mark.parametrize("name", ["bash", "zsh"])
def test_in_a_terminal(name: str, broker: Broker, tmp_path: Path) -> None:
    need(name)
    (tmp_path / "data.log").touch()
    command, start = START[name]
    with Shell(command, environment(tmp_path, broker.bootstrap), tmp_path) as shell:
        shell.type(start)
        shell.see("\nready")
        for typed, expected in (
            ("ixion whe\t", "ixion wheel"),
            ("ixion topic descr\tpay\t", "ixion topic describe payments"),
            ("ixion consume orders --exit\t", "--exit-at-end"),
            ("ixion produce orders --acks a\t", "--acks all"),
            ("ixion dump data\t", "dump data.log"),
        ):
            shell.type(typed)
            shell.see(expected)
            shell.type("\x15")  # empty the line


def test_a_bootstrap_address_before_the_command_in_bash(broker: Broker, tmp_path: Path) -> None:
    """bash cuts words at the colon of host:port."""
    command, start = START["bash"]
    with Shell(command, environment(tmp_path, "127.0.0.1:1"), tmp_path) as shell:
        shell.type(start)
        shell.see("\nready")
        shell.type(f"ixion -b {broker.bootstrap} topic describe or\t")
        shell.see("describe orders")


def test_in_fish(broker: Broker, tmp_path: Path) -> None:
    need("fish")

    def complete(line: str) -> list[str]:
        code = f"ixion completion fish | source; complete -C '{line}'"
        surroundings = environment(tmp_path, broker.bootstrap)
        command = ["fish", "--no-config", "-c", code]
        done = subprocess.run(command, env=surroundings, cwd=tmp_path, capture_output=True, text=True, check=True)
        return done.stdout.splitlines()

    (tmp_path / "data.log").touch()
    assert complete("ixion whe") == ["wheel\tWatch a live timing wheel."]
    assert complete("ixion topic describe pay") == ["payments"]
    assert [line.split("\t")[0] for line in complete("ixion dump data")] == ["data.log"]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("topic create t --config retention.m", ["retention.ms="]),
        ("topic alter t --unset retention.m", ["retention.ms"]),
        ("config set topic t cleanup.p", ["cleanup.policy="]),
        ("config get topic t cleanup.p", ["cleanup.policy"]),
        ("config unset broker 1 log.retention.h", ["log.retention.hours"]),
        ("config set group g consumer.heartbeat", ["consumer.heartbeat.interval.ms="]),
        ("config set logger 1 ix", []),
    ],
)
def test_names_of_settings(line: str, expected: list[str]) -> None:
    assert [name for name, _ in candidates(line.split())] == expected
