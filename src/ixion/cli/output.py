"""How results are shown: a table with rules in a terminal, plain columns in a pipe, JSON for programs."""

from __future__ import annotations

import json
import sys
from collections.abc import Collection, Sequence

Rows = Sequence[Sequence[object]]


def show_table(columns: Sequence[str], rows: Rows, *, right: Collection[str] = ()) -> None:
    """`right` names the columns of numbers, which are flush right."""
    texts = [["-" if cell is None or cell == "" else str(cell) for cell in row] for row in rows]
    if sys.stdout.isatty():
        draw_table(columns, texts, right)
    else:
        print_columns(columns, texts, right)


def print_columns(columns: Sequence[str], rows: Sequence[Sequence[str]], right: Collection[str]) -> None:
    """Columns two spaces apart, under a line of names; a cell has no spaces at its ends, so programs can cut."""
    heads = [column.upper().replace(" ", "-") for column in columns]
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    for row in [heads, *rows]:
        cells = [
            cell.rjust(width) if name in right else cell.ljust(width)
            for cell, width, name in zip(row, widths, columns, strict=True)
        ]
        print("  ".join(cells).rstrip())


def draw_table(columns: Sequence[str], rows: Sequence[Sequence[str]], right: Collection[str]) -> None:
    from rich.box import SIMPLE_HEAD
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        table.add_column(column, justify="right" if column in right else "left", overflow="fold")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    Console().print(table)


def show_json(value: object) -> None:
    print(json.dumps(value, indent=2, ensure_ascii=False))


def note(text: str) -> None:
    """Something worth knowing that is neither the result nor an error."""
    print(f"ixion: {text}", file=sys.stderr)
