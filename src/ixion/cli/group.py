"""`ixion group`: list, describe, reset, delete."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ixion.cli.command import LARGEST_OFFSET, Argument, Command, Group, Option, UsageError, number, whole
from ixion.cli.options import AS_JSON, CLUSTER, connect
from ixion.cli.output import note, show_json, show_table

if TYPE_CHECKING:
    from ixion.clients.cluster import Cluster
    from ixion.clients.groups import GroupDescription


def list_(as_json: bool, bootstrap: str, timeout: float) -> None:
    from ixion.clients.groups import list_groups

    with connect(bootstrap, timeout) as cluster:
        found = list_groups(cluster)
    if as_json:
        show_json({"group": each.group, "state": each.state, "type": each.kind} for each in found)
    elif not found:
        note("there are no groups")
    else:
        show_table(("group", "state", "type"), [(each.group, each.state, each.kind) for each in found])


def describe(name: str, watch: float | None, as_json: bool, bootstrap: str, timeout: float) -> None:
    from ixion.clients.groups import describe_group

    if watch is not None:
        from ixion.cli.group_watch import watch_group

        if not watch > 0:
            raise UsageError(f"--watch must be more than 0 seconds, not {watch:g}")
        with connect(bootstrap, timeout) as cluster:
            watch_group(cluster, name, watch, as_json)
        return
    with connect(bootstrap, timeout) as cluster:
        found = describe_group(cluster, name)
        rows = progress_rows(cluster, found)
    if as_json:
        members = [
            {"member": each.member_id, "instance": each.instance_id, "client": each.client_id, "host": each.host}
            for each in found.members
        ]
        show_json(
            [{"group": name, "state": found.state, "assignor": found.assignor, "members": members, "partitions": rows}]
        )
        return
    count = len(found.members)
    print(f"{name} is {found.state.lower()}, {count} member{'' if count == 1 else 's'}")
    if rows:
        columns = ("topic", "partition", "committed", "end", "lag", "client", "host")
        table = [[row[column] for column in columns] for row in rows]
        show_table(columns, table, right=("partition", "committed", "end", "lag"))


def reset(
    name: str,
    topic: list[str],
    to_earliest: bool,
    to_latest: bool,
    to_offset: int | None,
    to_datetime: str | None,
    shift: int | None,
    execute: bool,
    as_json: bool,
    bootstrap: str,
    timeout: float,
) -> None:
    from ixion.cli.group_reset import choose_target, plan_reset
    from ixion.clients.group_offsets import commit_offsets
    from ixion.clients.groups import check_empty

    target = choose_target(to_earliest, to_latest, to_offset, to_datetime, shift)
    with connect(bootstrap, timeout) as cluster:
        check_empty(cluster, name)
        plan = plan_reset(cluster, name, topic, target)
        if execute:
            commit_offsets(cluster, name, {step.place: step.after for step in plan})
    rows = [(step.place.topic, step.place.partition, step.before, step.after) for step in plan]
    if as_json:
        columns = ("topic", "partition", "before", "after")
        show_json({"group": name, "executed": execute, **dict(zip(columns, row, strict=True))} for row in rows)
        return
    show_table(("topic", "partition", "before", "after"), rows, right=("partition", "before", "after"))
    if not execute:
        note("nothing was changed; --execute does it")


def delete(names: list[str], bootstrap: str, timeout: float) -> None:
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


NAME: Final = Argument("name", "GROUP", complete="group")

GROUP: Final = Group(
    "group",
    "List, describe, reset and delete groups.",
    Command("list", "List groups with their state.", list_, options=(AS_JSON, *CLUSTER), aliases=("ls",)),
    Command(
        "describe",
        "Show how far a group has read, how much is left, and which member reads what.",
        describe,
        arguments=(NAME,),
        options=(
            Option("watch", "--watch -w", "Show the lag every so often, until Ctrl-C.", metavar="SECONDS", kind=number),
            AS_JSON,
            *CLUSTER,
        ),
        examples=("ixion group describe billing --watch 2",),
    ),
    Command(
        "reset",
        "Set where a group without members reads on. Shows the plan; --execute carries it out.",
        reset,
        arguments=(NAME,),
        options=(
            Option(
                "topic",
                "--topic -t",
                "Reset only this topic, or some partitions of it; may be repeated (default: every topic with commits).",
                metavar="TOPIC[:N,N]",
                many=True,
                complete="topic",
            ),
            Option("to_earliest", "--to-earliest", "To the first record there is."),
            Option("to_latest", "--to-latest", "To the end."),
            Option(
                "to_offset",
                "--to-offset",
                "To this offset, or the nearest there is.",
                metavar="N",
                kind=whole(0, LARGEST_OFFSET),
            ),
            Option("to_datetime", "--to-datetime", "To the first record of that time or later.", metavar="TIME"),
            Option(
                "shift",
                "--shift",
                "Forward by N records, or back if negative.",
                metavar="N",
                kind=whole(-LARGEST_OFFSET, LARGEST_OFFSET),
            ),
            Option("execute", "--execute", "Commit the plan (default: only show it)."),
            AS_JSON,
            *CLUSTER,
        ),
    ),
    Command(
        "delete",
        "Delete groups without members, and their offsets.",
        delete,
        arguments=(Argument("names", "GROUP...", many=True, complete="group"),),
        options=CLUSTER,
        aliases=("rm",),
    ),
)
