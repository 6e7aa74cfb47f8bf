"""`ixion dump`: shows the contents of files in a log directory."""

from __future__ import annotations

import json
import os
import sys
from typing import Final

from ixion.cli.command import Argument, Command, Exit, Option


def dump(path: str, as_json: bool, deep: bool) -> None:
    from ixion.broker.log.dump import dump_path

    if not os.path.exists(path):
        print(f"ixion: there is no {path}", file=sys.stderr)
        raise Exit(1)
    damaged = False
    for found in dump_path(path, deep):
        damaged = damaged or "damaged" in found or found.get("crc") == "wrong"
        if as_json:
            print(json.dumps(found, ensure_ascii=False))
        elif "file" in found:
            print(f"{found['file']} ({found['bytes']:,} bytes)")
        else:
            indent = "    " if "value" in found else "  "
            print(indent + " · ".join(f"{name} {value}" for name, value in found.items()))
    if damaged:
        print("ixion: parts marked as damaged cannot be read", file=sys.stderr)
        raise Exit(1)


DUMP: Final = Command(
    "dump",
    "Show batches, records, indexes, producer snapshots and checkpoints, as ixion and Apache Kafka store them.",
    dump,
    arguments=(Argument("path", "PATH", "A file, a partition folder, or a whole log directory.", complete="file"),),
    options=(
        Option("as_json", "--json", "One JSON object a line, for programs."),
        Option("deep", "--deep", "Show the records of every batch, too."),
    ),
)
