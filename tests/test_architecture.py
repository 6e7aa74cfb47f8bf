"""Every name in the text of ARCHITECTURE.md exists: modules, classes, functions, attributes."""

from __future__ import annotations

import ast
import keyword
import re
from collections import defaultdict
from pathlib import Path

from ixion.broker.replica.internal_topic import INTERNAL
from ixion.config.table import BROKER_SETTINGS
from ixion.config.topic import TOPIC_SETTINGS

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "ixion"
NAME = re.compile(r"`([A-Za-z_]\w*(?:\.\w+)*)`")
OTHERS = {"pyspark_ixion", "setup.py"}  # beside the package


def names_of(tree: ast.AST) -> set[str]:
    """All that a module or class defines or assigns to, at any depth."""
    found: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                found.add(name)
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()) | ast.arg(arg=name):
                found.add(name)
    return found


def everything() -> dict[str, set[str]]:
    """The names in each module, by its path below `ixion`, and in each class, by its own name."""
    found: dict[str, set[str]] = defaultdict(set)
    for path in SOURCE.rglob("*.py"):
        tree = ast.parse(path.read_text())
        module = path.relative_to(SOURCE.parent).with_suffix("").as_posix().replace("/", ".")
        found[module.removesuffix(".__init__")] |= names_of(tree)
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                found[node.name] |= names_of(node)
    return found


KNOWN = everything()
WORDS = {word for place, names in KNOWN.items() for word in (*place.split("."), *names)}


def exists(name: str) -> bool:
    """A module may be named from any of its folders on: `classic.rules`, `coordinators.group.classic.rules`."""
    parts = name.split(".")
    if len(parts) == 1:
        return name in WORDS or keyword.iskeyword(name) or name in INTERNAL
    for cut in range(len(parts), 0, -1):
        head, rest = ".".join(parts[:cut]), set(parts[cut:])
        if any((place == head or place.endswith(f".{head}")) and names >= rest for place, names in KNOWN.items()):
            return True
    return False


def test_names_in_the_text_exist() -> None:
    page = (ROOT / "ARCHITECTURE.md").read_text()
    named = set(NAME.findall(page)) - OTHERS - BROKER_SETTINGS.keys() - TOPIC_SETTINGS.keys()
    assert len(named) > 100
    assert sorted(name for name in named if not exists(name)) == []


def test_what_does_not_exist_is_found() -> None:
    assert exists("log.Log.lock")
    assert exists("replica.append")
    assert not exists("watchers.Shard.watch")
    assert not exists("log.Log.nowhere")
    assert not exists("no_such_word_anywhere")
