"""Every file and every name in the glossary of ARCHITECTURE.md exists, and no word is explained twice."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "ixion"
GLOSSARY = (ROOT / "ARCHITECTURE.md").read_text().partition("\n## Glossary\n")[2].partition("\n## ")[0]
ROWS = [
    tuple(cell.strip() for cell in line.strip("|").split("|"))
    for line in GLOSSARY.splitlines()
    if line.startswith("| ") and not line.startswith("| word ")
]


def defined(file: Path) -> set[str]:
    """The classes, functions and constants at the top of a module."""
    names: set[str] = set()
    for node in ast.parse(file.read_text()).body:
        match node:
            case ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
                names.add(node.name)
            case ast.Assign(targets=targets):
                names.update(target.id for target in targets if isinstance(target, ast.Name))
            case ast.AnnAssign(target=ast.Name(id=name)):
                names.add(name)
    return names


def test_there_are_rows_of_three_cells() -> None:
    assert len(ROWS) > 60
    assert {len(row) for row in ROWS} == {3}


@pytest.mark.parametrize(("word", "meaning", "where"), ROWS, ids=[row[0] for row in ROWS])
def test_files_and_names_exist(word: str, meaning: str, where: str) -> None:
    assert meaning, word
    quoted = re.findall("`([^`]+)`", where)
    files = [SOURCE / name for name in quoted if name.endswith(".py")]
    assert files
    missing = [file.name for file in files if not file.is_file()]
    assert not missing
    names = {name for file in files for name in defined(file)}
    assert not {name for name in quoted if not name.endswith(".py")} - names


def test_each_word_is_explained_once_and_in_alphabetical_order() -> None:
    words = [row[0].lower() for row in ROWS]
    assert len(words) == len(set(words))
    for table in GLOSSARY.split("\n### ")[1:]:
        found = re.findall(r"^\| (?!word \|)([^|]+) \|", table, re.MULTILINE)
        assert found == sorted(found, key=str.lower)
