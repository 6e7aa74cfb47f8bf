"""`ixion group`: list, describe, reset, delete."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ixion.cli.access import CLUSTER, Access
from ixion.cli.command import LARGEST_OFFSET, Argument, Command, Group, Option, UsageError, number, whole
from ixion.cli.options import AS_JSON, administer
from ixion.cli.output import note, show_json, show_table

if TYPE_CHECKING:
    from ixion.clients.admin.groups import GroupDescription
    from ixion.clients.admin.runner import AdminRunner


def list_(as_json: bool, access: Access) -> None:
    from ixion.clients.admin.groups import list_groups

    with administer(access) as admin:
        found = admin.run(list_groups)
    if as_json:
        show_json({"group": each.group, "state": each.state, "type": each.kind} for each in found)
    elif not found:
        note("there are no groups")
    else:
        show_table(("group", "state", "type"), [(each.group, each.state, each.kind) for each in found])


def describe(name: str, watch: float | None, as_json: bool, access: Access) -> None:
    from ixion.clients.admin.groups import describe_groups

    if watch is not None:
        from ixion.cli.group_watch import watch_group

        if not watch > 0:
            raise UsageError(f"--watch must be more than 0 seconds, not {watch:g}")
        with administer(access) as admin:
            watch_group(admin, name, watch, as_json)
        return
    with administer(access) as admin:
        found = admin.run(describe_groups, [name])[name]
        rows = progress_rows(admin, found)
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
    access: Access,
) -> None:
    from ixion.cli.group_reset import check_empty, choose_target, plan_reset
    from ixion.clients.admin.group_offsets import alter_group_offsets

    target = choose_target(to_earliest, to_latest, to_offset, to_datetime, shift)
    with administer(access) as admin:
        check_empty(admin, name)
        plan = plan_reset(admin, name, topic, target)
        if execute:
            admin.run(alter_group_offsets, name, {step.place: step.after for step in plan}).check()
    rows = [(step.place.topic, step.place.partition, step.before, step.after) for step in plan]
    if as_json:
        columns = ("topic", "partition", "before", "after")
        show_json({"group": name, "executed": execute, **dict(zip(columns, row, strict=True))} for row in rows)
        return
    show_table(("topic", "partition", "before", "after"), rows, right=("partition", "before", "after"))
    if not execute:
        note("nothing was changed; add --execute to do it")


def delete(names: list[str], access: Access) -> None:
    from ixion.clients.admin.groups import delete_groups

    with administer(access) as admin:
        found = admin.run(delete_groups, names)
    for name in found.done:
        print(f"deleted {name}")
    found.check()


def progress_rows(admin: AdminRunner, group: GroupDescription) -> list[dict[str, Any]]:
    """A row for every partition that the group has committed for or that a member reads."""
    from ixion.clients.admin.group_offsets import list_group_offsets
    from ixion.clients.admin.offsets import LATEST, list_offsets
    from ixion.clients.faults import UnknownTopicError

    stored = admin.run(list_group_offsets, [group.group])[group.group]
    committed = {place: each.offset for place, each in stored.items()}
    readers = {place: member for member in group.members for place in member.partitions}
    places = sorted({*committed, *readers})
    listed = admin.run(list_offsets, dict.fromkeys(places, LATEST))
    for place, fault in list(listed.faults.items()):
        if isinstance(fault, UnknownTopicError):  # offsets outlive their topic
            del listed.faults[place]
    end = {place: each.offset for place, each in listed.check().items()}
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
            Option(
                "watch", "--watch -w", "Print the lag at this interval, until Ctrl-C.", metavar="SECONDS", kind=number
            ),
            AS_JSON,
            *CLUSTER,
        ),
        examples=("ixion group describe billing --watch 2",),
    ),
    Command(
        "reset",
        "Set the offsets at which a group without members continues. Shows the plan; --execute carries it out.",
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
            Option("to_earliest", "--to-earliest", "To the first record that still exists."),
            Option("to_latest", "--to-latest", "To the end."),
            Option(
                "to_offset",
                "--to-offset",
                "To this offset, or the nearest one that exists.",
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
