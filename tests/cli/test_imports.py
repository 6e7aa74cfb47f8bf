"""What a command must not import, because it would take longer than the command itself. Times are in benchmarks/."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from ixion.testing import Broker

CODE = """
import sys
from ixion.cli.main import run
sys.argv = ["ixion", *{words!r}]
try:
    run()
except SystemExit:
    pass
print("\\nimported", *sys.modules)
"""

# Each takes milliseconds; together they were two thirds of a command's time.
NEVER = {"typer", "click", "pydantic", "rich", "argparse", "asyncio", "inspect", "dataclasses", "importlib.metadata"}
NO_WORK = {
    "ixion.clients",
    "ixion.language.protocol",
    "ixion.broker",
    "ixion.language.records",
    "ixion.config",
    "socket",
    "json",
}
NO_BROKER = {"ixion.broker", "ixion.broker.log", "ixion.config", "ixion.broker.apis", "datetime", "random", "difflib"}


def imported(*words: str, bootstrap: str = "127.0.0.1:1") -> set[str]:
    done = subprocess.run(
        [sys.executable, "-I", "-c", f"import sys; sys.path[:0] = {sys.path!r}\n" + CODE.format(words=words)],
        capture_output=True,
        text=True,
        env={**os.environ, "IXION_BOOTSTRAP": bootstrap},
        check=True,
    )
    return set(done.stdout.rpartition("\nimported ")[2].split())


@pytest.mark.parametrize(
    "words",
    [
        ["--help"],
        ["--version"],
        ["topic", "--help"],
        ["consume", "-h"],
        ["serve", "--help"],
        ["help", "formats"],
        ["__complete", "bash", "top"],
        ["__complete", "bash", "consume", "--of"],
        ["completion", "bash"],
    ],
    ids=" ".join,
)
def test_help_and_completion_import_tables_alone(words: list[str]) -> None:
    assert imported(*words) & (NEVER | NO_WORK) == set()


@pytest.mark.parametrize("words", [["topic", "list"], ["group", "list"], ["cluster", "info"]], ids=" ".join)
def test_a_command_imports_its_client_alone(words: list[str]) -> None:
    with Broker() as broker:
        found = imported(*words, bootstrap=broker.bootstrap)
    assert "ixion.clients.admin.runner" in found
    assert found & (NEVER | NO_BROKER) == set()
