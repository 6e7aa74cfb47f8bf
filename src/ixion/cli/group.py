"""`ixion group`: list, describe, reset, delete."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from ixion.cli.options import HERE, PATIENCE_S, AsJson, Bootstrap, Timeout, connect
from ixion.cli.output import note, show_json, show_table

if TYPE_CHECKING:
    from ixion.clients.cluster import Cluster
    from ixion.clients.groups import GroupDescription

group = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="List, describe, reset and delete groups.")

Name = Annotated[str, typer.Argument(metavar="GROUP")]


@group.command("list")
def list_(as_json: AsJson = False, bootstrap: Bootstrap = HERE, timeout: Timeout = PATIENCE_S) -> None:
    """List groups with their state."""
    from ixion.clients.groups import list_groups

    with connect(bootstrap, timeout) as cluster:
        found = list_groups(cluster)
    if as_json:
        show_json([{"group": each.group, "state": each.state, "type": each.kind} for each in found])
    elif not found:
        note("there are no groups")
    else:
        show_table(("group", "state", "type"), [(each.group, each.state, each.kind) for each in found])


@group.command()
def describe(name: Name, as_json: AsJson = False, bootstrap: Bootstrap = HERE, timeout: Timeout = PATIENCE_S) -> None:
    """Show how far a group has read, how much is left, and who reads what."""
    from ixion.clients.groups import describe_group

    with connect(bootstrap, timeout) as cluster:
        found = describe_group(cluster, name)
        rows = progress_rows(cluster, found)
    if as_json:
        members = [
            {"member": each.member_id, "instance": each.instance_id, "client": each.client_id, "host": each.host}
            for each in found.members
        ]
        show_json(
            {"group": name, "state": found.state, "assignor": found.assignor, "members": members, "partitions": rows}
        )
        return
    count = len(found.members)
    print(f"{name} is {found.state.lower()}, {count} member{'' if count == 1 else 's'}")
    if rows:
        columns = ("topic", "partition", "committed", "end", "lag", "client", "host")
        table = [[row[column] for column in columns] for row in rows]
        show_table(columns, table, right=("partition", "committed", "end", "lag"))


@group.command()
def reset(
    name: Name,
    topic: Annotated[
        list[str] | None,
        typer.Option("--topic", "-t", metavar="TOPIC[:N,N]", help="Only this one; all that it has read without."),
    ] = None,
    to_earliest: Annotated[bool, typer.Option("--to-earliest")] = False,
    to_latest: Annotated[bool, typer.Option("--to-latest")] = False,
    to_offset: Annotated[int | None, typer.Option("--to-offset", metavar="N", min=0)] = None,
    to_datetime: Annotated[str | None, typer.Option("--to-datetime", metavar="TIME")] = None,
    shift: Annotated[int | None, typer.Option("--shift", metavar="N", help="Forward, or back if negative.")] = None,
    execute: Annotated[bool, typer.Option("--execute", help="Do it; without, only show what would be done.")] = False,
    as_json: AsJson = False,
    bootstrap: Bootstrap = HERE,
    timeout: Timeout = PATIENCE_S,
) -> None:
    """Set where a group without members reads on. Shows the plan; --execute carries it out."""
    from ixion.cli.group_reset import choose_target, plan_reset
    from ixion.clients.group_offsets import commit_offsets
    from ixion.clients.groups import check_empty

    target = choose_target(to_earliest, to_latest, to_offset, to_datetime, shift)
    with connect(bootstrap, timeout) as cluster:
        check_empty(cluster, name)
        plan = plan_reset(cluster, name, topic or [], target)
        if execute:
            commit_offsets(cluster, name, {step.place: step.after for step in plan})
    rows = [(step.place.topic, step.place.partition, step.before, step.after) for step in plan]
    if as_json:
        columns = ("topic", "partition", "before", "after")
        show_json({"executed": execute, "partitions": [dict(zip(columns, row, strict=True)) for row in rows]})
        return
    show_table(("topic", "partition", "before", "after"), rows, right=("partition", "before", "after"))
    if not execute:
        note("nothing was changed; --execute does it")


@group.command()
def delete(
    names: Annotated[list[str], typer.Argument(metavar="GROUP...")],
    bootstrap: Bootstrap = HERE,
    timeout: Timeout = PATIENCE_S,
) -> None:
    """Delete groups without members, and their offsets."""
    from ixion.clients.groups import delete_group

    with connect(bootstrap, timeout) as cluster:
        for name in names:
            delete_group(cluster, name)
            print(f"deleted {name}")


def progress_rows(cluster: Cluster, group: GroupDescription) -> list[dict[str, Any]]:
    """A row for every partition that the group has committed for or that a member reads."""
    from ixion.clients.group_offsets import fetch_offsets
    from ixion.clients.offsets import LATEST, list_offsets

    committed = fetch_offsets(cluster, group.group)
    readers = {place: member for member in group.members for place in member.partitions}
    places = sorted({*committed, *readers})
    known = {place for place in places if exists(cluster, place.topic)}
    end = list_offsets(cluster, known, LATEST)
    rows = []
    for place in places:
        done, last = committed.get(place), end.get(place)
        reader = readers.get(place)
        rows.append(
            {
                "topic": place.topic,
                "partition": place.partition,
                "committed": done,
                "end": last,
                "lag": None if done is None or last is None else max(last - done, 0),
                "client": None if reader is None else reader.client_id,
                "host": None if reader is None else reader.host,
                "member": None if reader is None else reader.member_id,
            }
        )
    return rows


def exists(cluster: Cluster, topic: str) -> bool:
    """Offsets outlive their topic."""
    from ixion.clients.faults import UnknownTopicError

    try:
        cluster.topic(topic)
    except UnknownTopicError:
        return False
    return True
