"""`ixion read`: records of a topic into a file: Parquet, Arrow or CSV."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

from ixion.cli.access import CLUSTER, Access
from ixion.cli.command import Argument, Command, Option, UsageError
from ixion.cli.options import MOST, PARTITION, READ_COMMITTED, UNTIL, administer, reading
from ixion.cli.output import counted, note

if TYPE_CHECKING:
    from ixion.cli.read.files import RowFile
    from ixion.clients.admin.runner import AdminRunner
    from ixion.clients.consumer.ranges import Range
    from ixion.clients.metadata import TopicPartition
    from ixion.clients.starts import Start

SUFFIXES: Final = (".parquet", ".arrow", ".csv")


def read(
    topic: str,
    target: str | None,
    start: str,
    until: str | None,
    partition: list[int],
    most: int | None,
    headers: bool,
    read_committed: bool,
    access: Access,
) -> None:
    from ixion.cli.places import place
    from ixion.cli.read.files import open_file

    if target is None:
        raise UsageError(f"--to is missing: a file that ends in {', '.join(SUFFIXES)}")
    path = Path(target)
    if path.suffix not in SUFFIXES:
        raise UsageError(f"--to must be a file that ends in {', '.join(SUFFIXES)}, not {target!r}")
    begin, end = place(start), place(until or "latest")
    if begin.stored or end.stored:
        raise UsageError("'stored' is where a group has committed; 'ixion read' has no group")
    with administer(access) as admin:
        ranges = find_ranges(admin, topic, partition, begin, end, read_committed)
    with open_file(path, headers=headers) as file:
        copy(access, ranges, file, most, read_committed)
    if sys.stderr.isatty():
        note(f"{counted(file.rows, 'record')} in {target}")


def find_ranges(
    admin: AdminRunner, topic: str, partition: list[int], begin: Start, end: Start, read_committed: bool
) -> dict[TopicPartition, Range]:
    from ixion.clients.admin.starts import choose_partitions, resolve_start

    places = admin.run(choose_partitions, topic, partition)
    starts = admin.run(resolve_start, places, begin, read_committed=read_committed)
    ends = admin.run(resolve_start, places, end, read_committed=read_committed)
    return {place: (starts[place], ends[place]) for place in places}


def copy(
    access: Access,
    ranges: dict[TopicPartition, Range],
    file: RowFile,
    most: int | None,
    read_committed: bool,
) -> None:
    from ixion.cli.progress import ProgressLine
    from ixion.clients.consumer.ranges import read_ranges

    def say_missed(count: int) -> None:
        note(f"{counted(count, 'record')} deleted before they could be read")

    line = ProgressLine(lambda: f"{file.rows:,} records")
    found = read_ranges(
        access.bootstrap,
        ranges,
        read_committed=read_committed,
        patience_s=access.timeout_s,
        on_missed=say_missed,
        **reading(access),
    )
    for place, columns in found:
        if most is not None and file.rows + len(columns) >= most:
            file.write(place, columns, most - file.rows)
            break
        file.write(place, columns, len(columns))
        line.step()
    line.clear()


READ: Final = Command(
    "read",
    "Write the records of a topic into a Parquet, Arrow or CSV file.",
    read,
    arguments=(Argument("topic", "TOPIC", complete="topic"),),
    options=(
        Option(
            "target",
            "--to",
            "The file to write, of the kind of its suffix: .parquet, .arrow or .csv. An existing file is replaced"
            " once everything is written.",
            metavar="FILE",
            complete="file",
        ),
        Option(
            "start",
            "--offset -o",
            "Where to begin: earliest, an offset, -N (before the end), or a time such as @2026-11-01T00:00."
            " See 'ixion help offsets'.",
            metavar="WHERE",
            default="earliest",
            complete="earliest|latest",
            hidden="--from",
        ),
        UNTIL,
        MOST,
        PARTITION,
        Option("headers", "--headers", "Include headers (default), or not.", default=True, negative="--no-headers"),
        READ_COMMITTED,
        *CLUSTER,
    ),
    details="Without --until it reads the records that exist when the command starts."
    " Parquet and Arrow need pyarrow: pip install pyarrow.",
    examples=(
        "ixion read orders --to orders.parquet",
        "ixion read orders --to monday.csv -o @2026-11-02T00:00 --until @2026-11-03T00:00",
    ),
)
