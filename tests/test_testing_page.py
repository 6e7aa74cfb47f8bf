"""Every snippet of docs/testing.md does what the page says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from tests.broker.served import environment
from tests.testing.test_plugin import run_pytest

ROOT = Path(__file__).parents[1]
SNIPPETS = re.findall(
    r"^```python ?(\w*)\n(.*?)^```", (ROOT / "docs" / "testing.md").read_text(), re.DOTALL | re.MULTILINE
)


def test_the_tests_pass(tmp_path: Path) -> None:
    tests = [code for kind, code in SNIPPETS if kind == "test"]
    (conftest,) = [code for kind, code in SNIPPETS if kind == "conftest"]
    ended = run_pytest(tmp_path, "\n\n".join(tests), conftest=conftest)
    assert ended.returncode == 0, ended.stdout
    assert f"{sum(code.count('def test_') for code in tests)} passed" in ended.stdout


def test_the_scripts_print_what_went_through() -> None:
    said = [
        subprocess.run(
            [sys.executable, "-c", code], env=environment(), capture_output=True, text=True, timeout=60, check=True
        ).stdout
        for kind, code in SNIPPETS
        if kind == ""
    ]
    assert said == ["0 left\n", "precious\n"]
