"""A document as a list of its code blocks."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parents[2]
PAGES: Final = ("README.md", "docs/cli.md", "docs/testing.md", "docs/pipelines.md", "docs/delayed.md")


class Block(NamedTuple):
    kind: str  # what stands behind the ```
    text: str
    line: int  # the first of the text, counted from 1


class Step(NamedTuple):
    """A command of a console block, and the lines that it is said to print."""

    command: str
    shown: str


def blocks(page: str) -> list[Block]:
    text = (ROOT / page).read_text()
    found = re.finditer(r"^```(.*)\n((?:.*\n)*?)```$", text, re.MULTILINE)
    return [Block(match[1], match[2], text.count("\n", 0, match.start(2)) + 1) for match in found]


def steps(block: Block) -> list[Step]:
    first, *parts = re.split(r"^\$ ", block.text, flags=re.MULTILINE)
    assert not first, f"line {block.line}: a console block begins with a command"
    return [Step(command, shown) for command, _, shown in (part.partition("\n") for part in parts)]
