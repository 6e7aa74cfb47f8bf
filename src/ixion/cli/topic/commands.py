"""`ixion topic`: create, list, describe, alter, offsets, delete-records, delete."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ixion.cli.access import CLUSTER, Access
from ixion.cli.command import Argument, Command, Group, Option, UsageError, whole
from ixion.cli.options import AS_JSON, PARTITION, YES, administer, confirm, parse_pairs
from ixion.cli.output import counted, note, show_json, show_table
from ixion.cli.topic.offsets import delete_records, description, offsets

if TYPE_CHECKING:
    from ixion.clients.admin.runner import AdminRunner
    from ixion.clients.metadata import Topic


GOING: Final = ("being deleted", "marked for deletion")  # in the answers of ixion and of Apache Kafka


def create(
    names: list[str],
    partitions: int | None,
    replication: int | None,
    config: list[str],
    if_not_exists: bool,
    as_json: bool,
    access: Access,
) -> None:
    from ixion.clients.admin.topics import BROKER_DECIDES, NewTopic, create_topics
    from ixion.language.model.errors import ErrorCode, KafkaError

    configs = parse_pairs(config, "--config")
    count = BROKER_DECIDES if partitions is None else partitions
    factor = BROKER_DECIDES if replication is None else replication
    with administer(access) as admin:
        found = admin.run(create_topics, [NewTopic(name, count, factor, configs) for name in names])
    existing = {
        name
        for name, fault in found.faults.items()
        if fault.code is ErrorCode.TOPIC_ALREADY_EXISTS and not any(sign in fault.message for sign in GOING)
    }
    told = [name for name in dict.fromkeys(names) if name in found.done or (if_not_exists and name in existing)]
    if as_json:
        show_json([{"topic": name, "created": name in found.done} for name in told])
    for name in [] if as_json else told:
        made = found.done.get(name)
        print(f"{name} exists" if made is None else f"created {name} with {counted(len(made.partitions), 'partition')}")
    for name, fault in found.faults.items():
        if name not in existing:
            raise fault
        if not if_not_exists:
            raise KafkaError(fault.code, f"topic {name!r} exists; --if-not-exists accepts that")


def list_(pattern: str | None, internal: bool, as_json: bool, access: Access) -> None:
    from ixion.clients.admin.topics import list_topics
    from ixion.language.model.ids import id_text

    with administer(access) as admin:
        found = admin.run(list_topics, internal=internal)
        if pattern is not None:
            from fnmatch import fnmatchcase

            found = [topic for topic in found if fnmatchcase(topic.name, pattern)]
        records, sizes = record_counts(admin, found), sizes_of(admin)
    if as_json:
        show_json(
            [
                {
                    "topic": topic.name,
                    "id": id_text(topic.topic_id),
                    "partitions": len(topic.partitions),
                    "replicas": replicas(topic),
                    "records": records.get(topic.name),
                    "bytes": sizes.get(topic.name),
                    "internal": topic.internal,
                }
                for topic in found
            ]
        )
    elif not found:
        what = f"topic matches {pattern!r}" if pattern is not None else "topics; make one with: ixion topic create NAME"
        note(f"no {what}" if pattern is not None else f"there are no {what}")
    else:
        rows = [
            (topic.name, len(topic.partitions), replicas(topic), records.get(topic.name), sizes.get(topic.name))
            for topic in found
        ]
        columns = ("topic", "partitions", "replicas", "records", "bytes")
        show_table(columns, rows, right=columns[1:])


def record_counts(admin: AdminRunner, topics: list[Topic]) -> dict[str, int]:
    """By topic, how many offsets it has; without topics with a partition that does not answer, or has no leader."""
    from ixion.clients.admin.offsets import EARLIEST, LATEST, list_offsets
    from ixion.clients.metadata import TopicPartition

    places = [TopicPartition(topic.name, each.number) for topic in topics for each in topic.partitions]
    led = [TopicPartition(topic.name, each.number) for topic in topics for each in topic.partitions if each.leader >= 0]
    first = admin.run(list_offsets, dict.fromkeys(led, EARLIEST)).done
    end = admin.run(list_offsets, dict.fromkeys(led, LATEST)).done
    unknown = {place.topic for place in places if place not in first or place not in end}
    totals: dict[str, int] = {}
    for place in places:
        if place.topic not in unknown:
            totals[place.topic] = totals.get(place.topic, 0) + end[place].offset - first[place].offset
    return totals


def sizes_of(admin: AdminRunner) -> dict[str, int]:
    """By topic, the bytes of all replicas; nothing if we may not describe the cluster."""
    from ixion.clients.admin.replicas import describe_log_dirs
    from ixion.language.model.errors import KafkaError

    totals: dict[str, int] = {}
    try:
        found = admin.run(describe_log_dirs)
    except KafkaError:
        return {}
    for each in found:
        for replica in each.replicas:
            name = replica.partition.topic
            totals[name] = totals.get(name, 0) + replica.size
    return totals


def describe(name: str, as_json: bool, access: Access) -> None:
    with administer(access) as admin:
        shown = description(admin, name)
    if as_json:
        show_json([shown])
        return
    settings = "".join(f", {key}={value}" for key, value in shown["configs"].items())
    print(f"{name}, id {shown['id']}{', internal' if shown['internal'] else ''}{settings}")
    columns = ["partition", "leader", "replicas", "in sync", "first", "end"]
    rows = [
        [each["partition"], each["leader"], ids(each["replicas"]), ids(each["in_sync"]), each["first"], each["end"]]
        for each in shown["partitions"]
    ]
    if any(each["lag"] for each in shown["partitions"]):  # there are followers
        columns.append("lag")
        for row, each in zip(rows, shown["partitions"], strict=True):
            row.append(",".join(f"{node}:{'?' if lag is None else lag}" for node, lag in each["lag"].items()))
    show_table(columns, rows, right=("partition", "leader", "first", "end"))


def alter(name: str, partitions: int | None, config: list[str], unset: list[str], access: Access) -> None:
    from ixion.clients.admin.configs import Resource, alter_configs
    from ixion.clients.admin.topics import create_partitions
    from ixion.language.model.resource_type import ResourceType

    changes: dict[str, str | None] = {**parse_pairs(config, "--config"), **dict.fromkeys(unset)}
    if partitions is None and not changes:
        raise UsageError("nothing to alter: give --partitions, --config or --unset")
    with administer(access) as admin:
        if changes:
            admin.run(alter_configs, {Resource(ResourceType.TOPIC, name): changes}).check()
        if partitions is not None:
            admin.run(create_partitions, {name: partitions}).check()
    print(f"altered {name}")


def delete(names: list[str], if_exists: bool, yes: bool, access: Access) -> None:
    from ixion.clients.admin.topics import delete_topics
    from ixion.clients.faults import UnknownTopicError

    confirm(f"delete {', '.join(names)} and all records in {'it' if len(names) == 1 else 'them'}", yes)
    with administer(access) as admin:
        found = admin.run(delete_topics, names)
    for name in dict.fromkeys(names):
        fault = found.faults.get(name)
        if fault is None:
            print(f"deleted {name}")
        elif if_exists and isinstance(fault, UnknownTopicError):
            print(f"{name} does not exist")
            del found.faults[name]
    found.check()


def replicas(topic: Topic) -> int:
    return max((len(each.replicas) for each in topic.partitions), default=0)


def ids(nodes: tuple[int, ...]) -> str:
    return ",".join(map(str, nodes))


NAME: Final = Argument("name", "TOPIC", complete="topic")
CONFIGS: Final = Option(
    "config",
    "--config",
    "A topic setting; may be repeated.",
    metavar="NAME=VALUE",
    many=True,
    hidden="--set",
    complete="topic-setting",
)
PARTITIONS: Final = Option(
    "partitions", "--partitions -p", "Partitions of the topic (default: num.partitions).", metavar="N", kind=whole(1)
)

TOPIC: Final = Group(
    "topic",
    "Create, list, describe, alter and delete topics.",
    Command(
        "create",
        "Create topics.",
        create,
        arguments=(Argument("names", "TOPIC...", many=True),),
        options=(
            PARTITIONS,
            Option(
                "replication",
                "--replication -r",
                "Replicas of each partition (default: default.replication.factor).",
                metavar="N",
                kind=whole(1, 32767),
            ),
            CONFIGS,
            Option("if_not_exists", "--if-not-exists", "Do nothing if the topic exists."),
            AS_JSON,
            *CLUSTER,
        ),
        examples=("ixion topic create orders -p 6 --config retention.ms=86400000",),
    ),
    Command(
        "list",
        "List topics, with their partitions, replicas, records and bytes on all disks.",
        list_,
        arguments=(
            Argument(
                "pattern", "PATTERN", "Show only matching topics, such as 'orders-*'.", required=False, complete="topic"
            ),
        ),
        options=(Option("internal", "--internal", "Also show internal topics."), AS_JSON, *CLUSTER),
        aliases=("ls",),
    ),
    Command(
        "describe",
        "Show a topic: leaders, replicas with their lag, and offsets of its partitions, and its own settings.",
        describe,
        arguments=(NAME,),
        options=(AS_JSON, *CLUSTER),
    ),
    Command(
        "offsets",
        "Show the first and last offset of each partition, and the offset of a time.",
        offsets,
        arguments=(NAME,),
        options=(
            Option("at", "--at", "Also show the offset of this place: see 'ixion help offsets'.", metavar="WHERE"),
            PARTITION,
            AS_JSON,
            *CLUSTER,
        ),
        examples=("ixion topic offsets orders --at 2026-11-01T00:00",),
    ),
    Command(
        "alter",
        "Add partitions, change settings, or both.",
        alter,
        arguments=(NAME,),
        options=(
            Option(
                "partitions",
                "--partitions -p",
                "The new number of partitions; it can only grow.",
                metavar="N",
                kind=whole(1),
            ),
            CONFIGS,
            Option(
                "unset",
                "--unset",
                "Return a setting to its default.",
                metavar="NAME",
                many=True,
                complete="topic-setting-name",
            ),
            *CLUSTER,
        ),
        details="With more partitions, new records of a key may go to another partition.",
    ),
    Command(
        "delete-records",
        "Delete the records before an offset or a time. Shows the plan; --execute carries it out.",
        delete_records,
        arguments=(NAME, Argument("where", "WHERE", "The first record to keep: see 'ixion help offsets'.")),
        options=(
            PARTITION,
            Option(
                "execute",
                "--execute",
                "Delete them (default: only show what would be deleted).",
                hidden="--yes -y",
            ),
            AS_JSON,
            *CLUSTER,
        ),
        examples=("ixion topic delete-records orders 2026-11-01T00:00 --execute",),
        aliases=("trim",),
    ),
    Command(
        "delete",
        "Delete topics and all records in them.",
        delete,
        arguments=(Argument("names", "TOPIC...", many=True, complete="topic"),),
        options=(Option("if_exists", "--if-exists", "Do nothing if the topic does not exist."), YES, *CLUSTER),
        aliases=("rm",),
    ),
)
