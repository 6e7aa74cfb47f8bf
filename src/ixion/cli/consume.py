"""`ixion consume`: the records of a topic, as they come."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated

import typer

from ixion.cli.options import HERE, PATIENCE_S, Bootstrap, Timeout, connect
from ixion.cli.output import note

if TYPE_CHECKING:
    from ixion.clients.cluster import Cluster
    from ixion.clients.metadata import TopicPartition
    from ixion.clients.starts import Start


def consume(
    topic: Annotated[str, typer.Argument(metavar="TOPIC")],
    start: Annotated[
        str,
        typer.Option(
            "--from",
            "-f",
            metavar="WHERE",
            help="earliest, latest, an offset, -N (before the end), a time such as 2026-05-01T12:00, or @MILLISECONDS.",
        ),
    ] = "earliest",
    partition: Annotated[
        list[int] | None, typer.Option("--partition", "-p", metavar="N", help="Only this one; may be repeated.")
    ] = None,
    most: Annotated[int | None, typer.Option("--max", "-n", metavar="N", min=1, help="End after so many.")] = None,
    exit_at_end: Annotated[bool, typer.Option("--exit-at-end", "-e", help="Do not wait for more.")] = False,
    form: Annotated[
        str,
        typer.Option("--format", "-o", metavar="FORMAT", help="value, text, json, or a template: '{offset} {value}'."),
    ] = "value",
    null_marker: Annotated[
        str, typer.Option("--null-marker", metavar="TEXT", help="How a null key or value is written.")
    ] = "null",
    read_committed: Annotated[
        bool, typer.Option("--read-committed", help="Leave out what is not committed, or aborted.")
    ] = False,
    bootstrap: Bootstrap = HERE,
    timeout: Timeout = PATIENCE_S,
) -> None:
    """Print the records of a topic, and go on with what comes until Ctrl-C."""
    from ixion.cli.consume_copy import copy_to_ends, follow
    from ixion.cli.consume_format import writer
    from ixion.clients.reader import Reader
    from ixion.clients.starts import parse_start, resolve_start

    try:
        begin, write = parse_start(start), writer(form, null_marker)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None
    with connect(bootstrap, timeout) as cluster:
        places = choose_partitions(cluster, topic, partition)
        offsets = resolve_start(cluster, places, begin, read_committed=read_committed)
        ends = find_ends(cluster, offsets, read_committed) if exit_at_end else None
        say_if_moved(begin, offsets)
        with Reader(cluster, offsets, read_committed=read_committed, request_timeout_s=timeout) as reader:
            try:
                if ends is None:
                    follow(cluster, topic, reader, write, most, growing=not partition)
                else:
                    copy_to_ends(reader, write, most, ends, timeout)
            except KeyboardInterrupt:
                pass  # the way to end it
            finally:
                sys.stdout.flush()


def choose_partitions(cluster: Cluster, topic: str, wanted: list[int] | None) -> list[TopicPartition]:
    from ixion.clients.leaders import leader_of
    from ixion.clients.metadata import TopicPartition

    if wanted:
        places = [TopicPartition(topic, number) for number in wanted]
        for place in places:
            leader_of(cluster, place, cluster.deadline())
        return places
    return [TopicPartition(topic, each.number) for each in cluster.topic(topic).partitions]


def find_ends(cluster: Cluster, offsets: dict[TopicPartition, int], read_committed: bool) -> dict[TopicPartition, int]:
    from ixion.clients.offsets import LATEST, list_offsets

    return list_offsets(cluster, offsets, LATEST, read_committed=read_committed)


def say_if_moved(start: Start, offsets: dict[TopicPartition, int]) -> None:
    for place, offset in offsets.items():
        if start.offset is not None and offset != start.offset:
            note(f"{place} has no offset {start.offset}; beginning at {offset}")
