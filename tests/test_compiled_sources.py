"""What the compiler would accept and get wrong, looked for in the sources that are compiled."""

from __future__ import annotations

import ast
import re
import runpy
from pathlib import Path
from unittest.mock import patch

import pytest

CHECKOUT = Path(__file__).parent.parent


def hot_modules() -> list[str]:
    with patch("setuptools.setup"), pytest.MonkeyPatch.context() as here:
        here.chdir(CHECKOUT)
        here.setenv("IXION_PURE", "1")
        found: list[str] = runpy.run_path("setup.py")["hot_modules"]()
    return found


def test_every_mark_is_read() -> None:
    """A misspelt one would leave its module interpreted, which nobody would see."""
    modules = {CHECKOUT / module for module in hot_modules()}
    for path in (CHECKOUT / "src").rglob("*.py"):
        marked = [line for line in path.read_text().splitlines() if re.match(r"#.*\bcompiled\b.*setup", line)]
        parts = path.parent.rglob("*.py") if path.name == "__init__.py" else [path]
        assert not marked or modules >= {part for part in parts if part.name != "__init__.py"}, path


@pytest.mark.parametrize("module", hot_modules())
def test_names_of_caught_errors_have_one_type(module: str) -> None:
    """mypyc gives a variable the type of its first use: a second `except Other as error` raises TypeError instead."""
    for function in ast.walk(ast.parse((CHECKOUT / module).read_text())):
        if isinstance(function, (ast.FunctionDef, ast.AsyncFunctionDef)):
            caught: dict[str, set[str]] = {}
            for handler in ast.walk(function):
                if isinstance(handler, ast.ExceptHandler) and handler.name and handler.type:
                    caught.setdefault(handler.name, set()).add(ast.unparse(handler.type))
            assert all(len(types) == 1 for types in caught.values()), f"{function.name}: {caught}"
