"""`ixion dump`: what is in the files of a log directory."""

from __future__ import annotations

import json
import os
from typing import Annotated

import typer


def dump(
    path: Annotated[str, typer.Argument(help="A file, a partition folder, or a whole log directory.")],
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object a line.")] = False,
    deep: Annotated[bool, typer.Option("--deep", help="The records of every batch too.")] = False,
) -> None:
    """Show batches, records, indexes, producer snapshots and checkpoints, as ixion and Apache Kafka store them."""
    from ixion.log.dump import dump_path

    if not os.path.exists(path):
        typer.echo(f"there is no {path}", err=True)
        raise typer.Exit(1)
    damaged = False
    for found in dump_path(path, deep):
        damaged = damaged or "damaged" in found or found.get("crc") == "wrong"
        if as_json:
            typer.echo(json.dumps(found, ensure_ascii=False))
        elif "file" in found:
            typer.echo(f"{found['file']} ({found['bytes']:,} bytes)")
        else:
            indent = "    " if "value" in found else "  "
            typer.echo(indent + " · ".join(f"{name} {value}" for name, value in found.items()))
    if damaged:
        raise typer.Exit(2)
