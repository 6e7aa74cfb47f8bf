"""Every example runs and prints what its docstring says it prints."""

from __future__ import annotations

import ast
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.py"))


def promised_output(example: Path) -> str:
    docstring = ast.get_docstring(ast.parse(example.read_text("utf-8")))
    assert docstring, f"{example.name} has no docstring"
    _, found, block = docstring.partition("\nPrints:\n\n")
    assert found, f"{example.name} does not say what it prints"
    return textwrap.dedent(block) + "\n"


def test_there_are_examples() -> None:
    assert EXAMPLES


@pytest.mark.parametrize("example", EXAMPLES, ids=[path.stem for path in EXAMPLES])
def test_an_example_prints_what_it_promises(example: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", str(example)], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == promised_output(example)
