"""`ixion schedule`: list, cancel, purge."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

from ixion.cli.access import CLUSTER, Access
from ixion.cli.command import LARGEST_OFFSET, Argument, Command, Group, Option, UsageError, whole
from ixion.cli.options import AS_JSON, PARTITION, YES, administer, confirm
from ixion.cli.output import note, show_json, show_table

if TYPE_CHECKING:
    from ixion.broker.schedules.listing import Listing, Waiting
    from ixion.clients.admin.runner import AdminRunner
    from ixion.clients.settings import ProducerOptions

CANCEL: Final = "x-schedule-cancel"
MODE: Final = "delivery.delay.mode"
MOST_ID_BYTES: Final = 255


def list_(topic: str, partition: list[int], most: int | None, count: bool, as_json: bool, access: Access) -> None:
    with administer(access) as admin:
        found = [
            (number, row)
            for number in chosen(admin, topic, partition)
            for row in listing_of(admin, topic, number).rows()
        ]
    found.sort(key=lambda each: (each[1].due_ms, each[0], each[1].offset))
    if count:
        size = sum(row.size for _, row in found)
        if as_json:
            show_json([{"topic": topic, "waiting": len(found), "bytes": size}])
        else:
            said = "1 record waits" if len(found) == 1 else f"{len(found):,} records wait"
            print(f"{said} in {topic}, {size:,} bytes")
        return
    shown = [as_dict(number, row, as_json) for number, row in found[:most]]
    if as_json:
        show_json(shown)
    elif not shown:
        note(nothing_waits(access, topic))
    else:
        columns = ("due", "partition", "offset", "id", "key", "bytes", "state")
        show_table(columns, [list(row.values()) for row in shown], right=("partition", "offset", "bytes"))


def mode_of(admin: AdminRunner, topic: str) -> str:
    """delivery.delay.mode of a topic; empty if we may not describe its settings."""
    from ixion.clients.admin.configs import Resource, describe_configs
    from ixion.language.model.errors import ErrorCode, KafkaError
    from ixion.language.model.resource_type import ResourceType

    resource = Resource(ResourceType.TOPIC, topic)
    try:
        settings = {entry.name: entry.value for entry in admin.run(describe_configs, [resource])[resource]}
    except KafkaError as error:
        if error.code == ErrorCode.TOPIC_AUTHORIZATION_FAILED:
            return ""
        raise
    return settings.get(MODE) or "off"


def nothing_waits(access: Access, topic: str) -> str:
    with administer(access) as admin:
        mode = mode_of(admin, topic)
    if mode == "fixed":
        return f"{topic} has {MODE}=fixed: its records wait in the topic itself and are not listed"
    return f"nothing waits in {topic}" + (f", which has {MODE}=off" if mode == "off" else "")


def check_cancels(admin: AdminRunner, topic: str) -> None:
    """UsageError in another mode, in which a cancelling record would be delivered like any other."""
    mode = mode_of(admin, topic)
    if mode not in ("record", ""):
        raise UsageError(f"{topic} has {MODE}={mode}; records can be cancelled in mode record only")


def listing_of(admin: AdminRunner, topic: str, number: int) -> Listing:
    from ixion.broker.schedules.listing import listed
    from ixion.cli.schedule.reading import read_notes

    return listed(read_notes(admin, topic, number))


def gone(before: Listing, after: Listing) -> list[Waiting]:
    """What was cancelled: it waits no more, and was not delivered."""
    left = {row.offset for row in after.rows()} | after.delivered
    return [row for row in before.rows() if row.offset not in left]


def chosen(admin: AdminRunner, topic: str, partition: list[int]) -> list[int]:
    from ixion.clients.admin.starts import find_topic

    there = [part.number for part in admin.run(find_topic, topic).partitions]
    missing = [number for number in partition if number not in there]
    if missing:
        raise UsageError(f"{topic} has no partition {missing[0]}")
    return partition or there


def as_dict(number: int, row: Waiting, as_json: bool) -> dict[str, Any]:
    """For people in local time; for programs in UTC, and with the zone."""
    from ixion.cli.consume.format import local_time, utc_time

    return {
        "due": utc_time(row.due_ms) if as_json else local_time(row.due_ms),
        "partition": number,
        "offset": row.offset,
        "id": row.schedule_id.decode("utf-8", "backslashreplace"),
        "key": None if row.key is None else row.key.decode("utf-8", "backslashreplace"),
        "bytes": row.size,
        "state": "waits" if row.committed else "in transaction",
    }


def cancel(topic: str, offset: list[int], schedule_id: list[str], partition: list[int], access: Access) -> None:
    wanted = [f"@{each}".encode() for each in offset] + [each.encode() for each in schedule_id]
    if not wanted:
        raise UsageError("say what to cancel: --offset N or --id ID")
    for each in schedule_id:
        if not 0 < len(each.encode()) <= MOST_ID_BYTES or each.startswith("@") or each == "*":
            raise UsageError(f"no record can have the schedule id {each!r}; 'ixion schedule purge' cancels all")
    with administer(access) as admin:
        numbers = chosen(admin, topic, partition)
        if offset and len(numbers) > 1:
            raise UsageError(f"{topic} has {len(numbers)} partitions: --offset needs --partition")
        check_cancels(admin, topic)
        before = {number: listing_of(admin, topic, number) for number in numbers}
        send(access, topic, [(number, each) for number in numbers for each in wanted])
        found = [row for number in numbers for row in gone(before[number], listing_of(admin, topic, number))]
    count = sum(f"@{row.offset}".encode() in wanted or row.schedule_id in wanted for row in found)
    print(f"cancelled {count} of {len(wanted)}")


def purge(topic: str, partition: list[int], yes: bool, access: Access) -> None:
    confirm(f"cancel every record that waits in {topic}", yes)
    with administer(access) as admin:
        numbers = chosen(admin, topic, partition)
        check_cancels(admin, topic)
        before = {number: listing_of(admin, topic, number) for number in numbers}
        send(access, topic, [(number, b"*") for number in numbers])
        count = sum(len(gone(before[number], listing_of(admin, topic, number))) for number in numbers)
    print(f"cancelled {count} records of {topic}")


def send(access: Access, topic: str, wanted: list[tuple[int, bytes]]) -> None:
    """Send records that cancel others, and wait for their acknowledgements."""
    from ixion.clients.producer import Producer

    settings = cast("ProducerOptions", {**access.security, "client_id": "ixion-cli"})
    with Producer(access.bootstrap, **settings) as producer:
        sent = [
            producer.send(topic, b"", key=b"ixion-schedule", headers=((CANCEL, what),), partition=number)
            for number, what in wanted
        ]
        producer.flush()
        for each in sent:
            each.result(access.timeout_s)


TOPIC_ARGUMENT: Final = Argument("topic", "TOPIC", complete="topic")
SCHEDULE: Final = Group(
    "schedule",
    "List and cancel records that wait for a later delivery.",
    Command(
        "list",
        "List the waiting records of a topic, by due time.",
        list_,
        arguments=(TOPIC_ARGUMENT,),
        options=(
            PARTITION,
            Option("most", "--max -n", "Show only the first N.", metavar="N", kind=whole(1, LARGEST_OFFSET)),
            Option("count", "--count", "Show only their number and size."),
            AS_JSON,
            *CLUSTER,
        ),
        examples=("ixion schedule list reminders",),
        aliases=("ls",),
    ),
    Command(
        "cancel",
        "Cancel waiting records, by offset or by schedule id.",
        cancel,
        arguments=(TOPIC_ARGUMENT,),
        options=(
            Option(
                "offset",
                "--offset -o",
                "The offset that the producer got; may be repeated.",
                metavar="N",
                kind=whole(0, LARGEST_OFFSET),
                many=True,
            ),
            Option("schedule_id", "--id", "The value of x-schedule-id; may be repeated.", metavar="ID", many=True),
            PARTITION,
            *CLUSTER,
        ),
        examples=("ixion schedule cancel reminders --offset 17",),
    ),
    Command(
        "purge",
        "Cancel every waiting record of a topic.",
        purge,
        arguments=(TOPIC_ARGUMENT,),
        options=(PARTITION, YES, *CLUSTER),
    ),
)
