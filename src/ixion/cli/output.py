"""How results are shown: tables with rules in a terminal, plain columns in a pipe, JSON lines for programs."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterable, Sequence

Rows = Sequence[Sequence[object]]


def show_table(columns: Sequence[str], rows: Rows, *, right: Collection[str] = ()) -> None:
    """`right` names the columns that are right-aligned."""
    texts = [["-" if cell is None or cell == "" else str(cell) for cell in row] for row in rows]
    if sys.stdout.isatty():
        draw_table(columns, texts, right)
    else:
        print_columns([column.upper().replace(" ", "-") for column in columns], columns, texts, right)


def print_columns(
    heads: Sequence[str],
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    right: Collection[str],
    *,
    rule: str = "",
) -> None:
    """Columns two spaces apart, under a line of names; cells are stripped, so that programs can split lines."""
    widths = widths_of(heads, rows)
    for place, row in enumerate([heads, *rows]):
        cells = [
            cell.rjust(width) if name in right else cell.ljust(width)
            for cell, width, name in zip(row, widths, columns, strict=True)
        ]
        print("  ".join(cells).rstrip())
        if rule and place == 0:
            print(rule * (sum(widths) + 2 * (len(widths) - 1)))


def widths_of(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[int]:
    return [max(map(len, column)) for column in zip(heads, *rows, strict=True)]


def draw_table(columns: Sequence[str], rows: Sequence[Sequence[str]], right: Collection[str]) -> None:
    """Draw the table here if it fits. rich folds wide cells, but takes as long to import as everything else."""
    from ixion.cli.help.pages import terminal_columns

    widths = widths_of(columns, rows)
    if sum(widths) + 2 * (len(widths) - 1) <= terminal_columns():
        print_columns(columns, columns, rows, right, rule="─")
        return
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


def show_json(values: Iterable[object]) -> None:
    """One object a line, as everywhere in ixion."""
    import json

    for value in values:
        print(json.dumps(value, ensure_ascii=False))


def counted(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def note(text: str) -> None:
    """Print information that is neither the result nor an error, after everything printed before."""
    sys.stdout.flush()
    print(f"ixion: {text}", file=sys.stderr)
