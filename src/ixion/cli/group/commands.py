"""`ixion group`: list, describe, reset, delete."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ixion.cli.access import CLUSTER, Access
from ixion.cli.command import LARGEST_OFFSET, Argument, Command, Group, Option, UsageError, number, whole
from ixion.cli.options import AS_JSON, YES, administer, confirm
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
        from ixion.cli.group.watch import watch_group

        if not watch > 0:
            raise UsageError(f"--watch must be more than 0 seconds, not {watch:g}")
        with administer(access) as admin:
            watch_group(admin, name, watch, as_json)
        return
    with administer(access) as admin:
        found = admin.run(describe_groups, [name])[name]
        rows = queue_rows(admin, found) if found.kind == "share" else progress_rows(admin, found)
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
    if rows and found.kind == "share":
        numbers = ("partition", "start", "end", "lag")
        table = [[row["topic"], *[row[name] for name in numbers], ", ".join(row["clients"]) or None] for row in rows]
        show_table(("topic", *numbers, "clients"), table, right=numbers)
    elif rows:
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
    from ixion.cli.group.reset import check_empty, choose_target, plan_reset
    from ixion.clients.admin.group_offsets import alter_group_offsets
    from ixion.clients.admin.share_groups import alter_share_group_offsets

    target = choose_target(to_earliest, to_latest, to_offset, to_datetime, shift)
    with administer(access) as admin:
        kind = check_empty(admin, name)
        plan = plan_reset(admin, name, kind, topic, target)
        if execute:
            alter = alter_share_group_offsets if kind == "share" else alter_group_offsets
            admin.run(alter, name, {step.place: step.after for step in plan}).check()
    rows = [(step.place.topic, step.place.partition, step.before, step.after) for step in plan]
    if as_json:
        columns = ("topic", "partition", "before", "after")
        show_json({"group": name, "executed": execute, **dict(zip(columns, row, strict=True))} for row in rows)
        return
    show_table(("topic", "partition", "before", "after"), rows, right=("partition", "before", "after"))
    if not execute:
        note("nothing was changed; add --execute to do it")


def delete(names: list[str], yes: bool, access: Access) -> None:
    from ixion.clients.admin.groups import delete_groups

    confirm(f"delete {', '.join(names)} and the committed offsets", yes)
    with administer(access) as admin:
        found = admin.run(delete_groups, names)
    for name in found.done:
        print(f"deleted {name}")
    found.check()


def dead_letters_(name: str, send_again: bool, everything: bool, as_json: bool, access: Access) -> None:
    from ixion.cli.group.dead_letters import dead_letters

    dead_letters(name, send_again, everything, as_json, access)


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


def queue_rows(admin: AdminRunner, group: GroupDescription) -> list[dict[str, Any]]:
    """A row for every partition that the share group knows or that a member fetches."""
    from ixion.clients.admin.offsets import LATEST, list_offsets
    from ixion.clients.admin.share_groups import list_share_group_offsets

    known = admin.run(list_share_group_offsets, [group.group])[group.group]
    places = sorted({*known, *[place for member in group.members for place in member.partitions]})
    end = admin.run(list_offsets, dict.fromkeys(places, LATEST)).done
    rows = []
    for place in places:
        at, last = known.get(place), end.get(place)
        rows.append(
            {
                "topic": place.topic,
                "partition": place.partition,
                "start": None if at is None or at.start_offset < 0 else at.start_offset,
                "end": None if last is None else last.offset,
                "lag": None if at is None or at.lag < 0 else at.lag,
                "clients": sorted(member.client_id for member in group.members if place in member.partitions),
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
            Option("execute", "--execute", "Commit the plan (default: only show it).", hidden="--yes -y"),
            AS_JSON,
            *CLUSTER,
        ),
    ),
    Command(
        "dead-letters",
        "Show what a share group could not process, or send it again.",
        dead_letters_,
        arguments=(NAME,),
        options=(
            Option(
                "send_again", "--send-again", "Send the records to their partitions again (default: only show them)."
            ),
            Option("everything", "--all -a", "Also those that were sent again."),
            AS_JSON,
            *CLUSTER,
        ),
        examples=("ixion group dead-letters workers --send-again",),
    ),
    Command(
        "delete",
        "Delete groups without members, and their offsets.",
        delete,
        arguments=(Argument("names", "GROUP...", many=True, complete="group"),),
        options=(YES, *CLUSTER),
        aliases=("rm",),
    ),
)
