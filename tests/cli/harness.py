"""Runs command lines in this process against a broker, and keeps what they print.

Use it to test a command: its output, its errors and its exit code. For completion and terminals, use `shell`.
"""

from __future__ import annotations

import itertools
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from ixion.cli.app import execute

numbers = itertools.count(1)


class Ixion:
    """`ixion("topic", "list")` is its standard output; `.errors` what went to standard error with it."""

    def __init__(
        self, bootstrap: str, capture: pytest.CaptureFixture[bytes], patch: pytest.MonkeyPatch, tmp_path: Path
    ) -> None:
        self.bootstrap = bootstrap
        self.errors = ""
        self._capture = capture
        self._patch = patch
        self._input = tmp_path / "stdin"
        patch.setenv("IXION_BOOTSTRAP", bootstrap)

    def raw(self, *words: str, stdin: bytes = b"", code: int = 0) -> bytes:
        self._input.write_bytes(stdin)
        with self._input.open() as file:
            self._patch.setattr(sys, "stdin", file)
            self._capture.readouterr()
            found = execute(list(words))
        out, err = self._capture.readouterr()
        self.errors = err.decode()
        assert found == code, f"exit code {found}: {self.errors or out!r}"
        return out

    def __call__(self, *words: str, stdin: str = "", code: int = 0) -> str:
        return self.raw(*words, stdin=stdin.encode(), code=code).decode()

    def json(self, *words: str) -> Any:
        """The one object that it prints."""
        (found,) = self.jsons(*words)
        return found

    def jsons(self, *words: str) -> list[Any]:
        """The objects that it prints, one a line."""
        return [json.loads(line) for line in self(*words, "--json").splitlines()]

    def records(self, *words: str) -> list[dict[str, Any]]:
        """What `consume` finds to the end, as JSON."""
        return [json.loads(line) for line in self("consume", *words, "--exit-at-end", "--format", "json").splitlines()]

    def topic(self, partitions: int = 1, **config: str) -> str:
        """A new one."""
        name = f"topic-{next(numbers)}"
        given = [word for key, value in config.items() for word in ("--config", f"{key.replace('_', '.')}={value}")]
        self("topic", "create", name, "--partitions", str(partitions), *given)
        return name

    def refused(self, *words: str, stdin: str = "", code: int = 1) -> str:
        """The one line that says why not."""
        assert self(*words, stdin=stdin, code=code) == ""
        (line,) = self.errors.splitlines()
        return line
