"""`ixion consume`: prints the records of topics as they arrive."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

from ixion.cli.access import CLUSTER, Access
from ixion.cli.command import Argument, Command, Option, UsageError
from ixion.cli.options import MOST, PARTITION, READ_COMMITTED, UNTIL, administer, reading
from ixion.cli.output import note

if TYPE_CHECKING:
    from ixion.cli.consume.copy import Copy, Wanted
    from ixion.clients.admin.runner import AdminRunner
    from ixion.clients.filter.parse import Filter
    from ixion.clients.metadata import TopicPartition
    from ixion.clients.starts import Start
    from ixion.language.records.record import Record


def consume(
    topics: list[str],
    start: str | None,
    until: str | None,
    partition: list[int],
    most: int | None,
    exit_at_end: bool,
    follow: bool,
    group: str | None,
    share: str | None,
    form: str,
    as_json: bool,
    null_marker: str,
    key: str | None,
    grep: str | None,
    filter: str | None,  # noqa: A002 (its name on the command line)
    read_committed: bool,
    access: Access,
) -> None:
    from ixion.cli.consume.copy import Copy
    from ixion.cli.consume.format import writer
    from ixion.cli.consume.group import consume_in_group
    from ixion.cli.places import place

    if follow and (exit_at_end or until is not None):
        raise UsageError("--follow never ends; leave out --exit-at-end and --until")
    begin = place(start or ("earliest" if group is None else "stored"))
    end = None if until is None else place(until)
    if end is not None and end.stored:
        raise UsageError("--until does not accept 'stored'")
    try:
        write = writer("json" if as_json else form, null_marker)
    except ValueError as error:
        raise UsageError(str(error)) from None
    wanted = record_filter(key, grep, filter)
    if partition and len(topics) > 1:
        raise UsageError("--partition is for one topic")
    with administer(access) as admin:
        copy = Copy(topics, write, most, read_committed, access.timeout_s, wanted)
        try:
            if share is not None:
                from ixion.cli.consume.share import consume_as_queue, refuse_places

                given = {
                    "--group": group is not None,
                    "--offset": start is not None,
                    "--until": end is not None,
                    "--exit-at-end": exit_at_end,
                    "--partition": bool(partition),
                    "--key": key is not None,
                    "--grep": grep is not None,
                    "--filter": filter is not None,
                    "--read-committed": read_committed,
                }
                refuse_places(share, given)
                consume_as_queue(admin, access, share, copy)
            elif group is not None:
                if partition:
                    raise UsageError("the group assigns the partitions; leave out --partition")
                if end is not None:
                    raise UsageError("--group continues from its commits; leave out --until")
                consume_in_group(admin, access, group, copy, begin, exit_at_end)
            elif begin.stored:
                raise UsageError("'stored' is where a group has committed; name the group with --group")
            else:
                consume_alone(admin, access, copy, begin, end, partition, exit_at_end)
        except KeyboardInterrupt:
            if exit_at_end or end is not None or most is not None:
                raise  # records are missing from the output
        finally:
            sys.stdout.flush()


def consume_alone(
    admin: AdminRunner,
    access: Access,
    copy: Copy,
    begin: Start,
    end: Start | None,
    partition: list[int],
    exit_at_end: bool,
) -> None:
    from ixion.cli.consume.copy import LOOK_S
    from ixion.clients.admin.offsets import LATEST
    from ixion.clients.admin.starts import choose_partitions, offsets_at, resolve_start
    from ixion.clients.reader import Reader

    places = [place for topic in copy.topics for place in admin.run(choose_partitions, topic, partition)]
    offsets = admin.run(resolve_start, places, begin, read_committed=copy.read_committed)
    ends: dict[TopicPartition, int] | None = None
    if end is not None:
        ends = admin.run(resolve_start, places, end, read_committed=copy.read_committed)
    elif exit_at_end:
        ends = admin.run(offsets_at, places, LATEST, copy.read_committed)
    say_if_moved(begin, offsets)
    options = reading(access)
    options["metadata_max_age_s"] = LOOK_S
    with Reader(access.bootstrap, offsets, read_committed=copy.read_committed, **options) as reader:
        if ends is None:
            copy.follow(reader, growing=not partition)
        else:
            copy.to_ends(reader, ends)


def record_filter(key: str | None, grep: str | None, expression: str | None) -> Wanted | None:
    """Whether to print a record; None if all are wanted."""
    import re

    fixed = None if key is None else key.encode(errors="surrogateescape")
    try:
        pattern = None if grep is None else re.compile(grep.encode(errors="surrogateescape"))
    except re.error as error:
        raise UsageError(f"--grep {grep!r} is not a regular expression: {error}") from None
    fits = None if expression is None else filter_of(expression)

    def wanted(place: TopicPartition, record: Record) -> bool:
        if fixed is not None and record.key != fixed:
            return False
        if pattern is not None and (record.value is None or pattern.search(record.value) is None):
            return False
        return fits is None or fits.fits(record, place.partition)

    return wanted if fixed is not None or pattern is not None or fits is not None else None


def filter_of(expression: str) -> Filter:
    from ixion.clients.filter.parse import compiled
    from ixion.clients.filter.tokens import FilterError

    try:
        return compiled(expression)
    except FilterError as error:
        raise UsageError(f"--filter: {error} (see 'ixion help filters')") from None


def say_if_moved(start: Start, offsets: dict[TopicPartition, int]) -> None:
    for place, offset in offsets.items():
        if start.offset is not None and offset != start.offset:
            note(f"{place} has no offset {start.offset}; starting at {offset}")


CONSUME: Final = Command(
    "consume",
    "Print the records of topics, then wait for new ones until Ctrl-C.",
    consume,
    arguments=(Argument("topics", "TOPIC...", many=True, complete="topic"),),
    options=(
        Option(
            "start",
            "--offset -o",
            "Where to begin: earliest, latest, stored, an offset, -N (before the end), or a time such as @-1h or"
            " @2026-11-01T00:00. See 'ixion help offsets'. (default: earliest; with --group: stored)",
            metavar="WHERE",
            complete="earliest|latest|stored",
            hidden="--from",
        ),
        UNTIL,
        MOST,
        Option("exit_at_end", "--exit-at-end -e", "Stop at the records that exist when the command starts."),
        Option("follow", "--follow", "Wait for new records at the end (the default)."),
        PARTITION,
        Option(
            "group",
            "--group -g",
            "Read as a member of this group, and commit printed records.",
            metavar="GROUP",
            complete="group",
        ),
        Option(
            "share",
            "--share",
            "Take records from this share group, a queue, and accept printed records.",
            metavar="GROUP",
            complete="group",
        ),
        Option(
            "form",
            "--format -f",
            "value, text, json, or a template: '{offset} {value}' or '%o %v'. See 'ixion help formats'.",
            metavar="FORMAT",
            default="value",
            complete="value|text|json",
        ),
        Option("as_json", "--json", "Short for --format json: one JSON object a line."),
        Option("null_marker", "--null-marker", "Text for a null key or value.", metavar="TEXT", default="null"),
        Option("key", "--key -k", "Print only records with this key.", metavar="KEY"),
        Option("grep", "--grep", "Print only records whose value matches this regular expression.", metavar="PATTERN"),
        Option(
            "filter",
            "--filter",
            "Print only records that fit: 'value.total > 100 and key startswith \"c-\"'. See 'ixion help filters'.",
            metavar="EXPRESSION",
        ),
        READ_COMMITTED,
        *CLUSTER,
    ),
    examples=(
        "ixion consume orders -o -10 -e",
        "ixion consume orders -o @2026-11-01T00:00 --until @2026-11-02T00:00 --json",
        "ixion consume jobs --share workers -n 1",
        "ixion consume orders --group billing -f '%p:%o %k=%v'",
    ),
)
