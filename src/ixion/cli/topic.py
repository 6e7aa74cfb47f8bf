"""`ixion topic`: create, list, describe, alter, delete."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from ixion.cli.options import HERE, PATIENCE_S, AsJson, Bootstrap, Timeout, connect, parse_pairs
from ixion.cli.output import note, show_json, show_table

if TYPE_CHECKING:
    from ixion.clients.cluster import Cluster
    from ixion.clients.metadata import Topic

topic = typer.Typer(
    no_args_is_help=True, rich_markup_mode=None, help="Create, list, describe, alter and delete topics."
)

Name = Annotated[str, typer.Argument(metavar="TOPIC")]
Names = Annotated[list[str], typer.Argument(metavar="TOPIC...")]
Configs = Annotated[
    list[str] | None, typer.Option("--config", metavar="NAME=VALUE", help="A setting; may be repeated.")
]


@topic.command()
def create(
    names: Names,
    partitions: Annotated[int | None, typer.Option("--partitions", "-p", metavar="N")] = None,
    replication: Annotated[int | None, typer.Option("--replication", "-r", metavar="N")] = None,
    config: Configs = None,
    if_not_exists: Annotated[bool, typer.Option("--if-not-exists", help="It may exist already.")] = False,
    as_json: AsJson = False,
    bootstrap: Bootstrap = HERE,
    timeout: Timeout = PATIENCE_S,
) -> None:
    """Create topics. Without numbers the broker's num.partitions and default.replication.factor hold."""
    from ixion.clients.topics import BROKER_DECIDES, create_topic
    from ixion.model.errors import ErrorCode, KafkaError

    configs = parse_pairs(config or (), "--config")
    made = []
    with connect(bootstrap, timeout) as cluster:
        for name in names:
            try:
                found = create_topic(
                    cluster,
                    name,
                    partitions=BROKER_DECIDES if partitions is None else partitions,
                    replication=BROKER_DECIDES if replication is None else replication,
                    configs=configs,
                )
            except KafkaError as error:
                if error.code != ErrorCode.TOPIC_ALREADY_EXISTS:
                    raise
                if not if_not_exists:
                    raise KafkaError(error.code, f"topic {name!r} exists; --if-not-exists accepts that") from None
                found = None
            made.append((name, found))
    if as_json:
        show_json([{"topic": name, "created": found is not None} for name, found in made])
    for name, found in [] if as_json else made:
        if found is None:
            print(f"{name} exists")
        else:
            count = len(found.partitions)
            print(f"created {name} with {count} partition{'' if count == 1 else 's'}")


@topic.command("list")
def list_(
    internal: Annotated[bool, typer.Option("--internal", help="Those of the cluster itself too.")] = False,
    as_json: AsJson = False,
    bootstrap: Bootstrap = HERE,
    timeout: Timeout = PATIENCE_S,
) -> None:
    """List topics, with partitions and replicas; internal ones on request."""
    from ixion.clients.topics import list_topics
    from ixion.model.ids import id_text

    with connect(bootstrap, timeout) as cluster:
        found = [topic for topic in list_topics(cluster) if internal or not topic.internal]
    if as_json:
        show_json(
            [
                {
                    "topic": topic.name,
                    "id": id_text(topic.topic_id),
                    "partitions": len(topic.partitions),
                    "replicas": replicas(topic),
                    "internal": topic.internal,
                }
                for topic in found
            ]
        )
    elif not found:
        note("there are no topics; make one with: ixion topic create NAME")
    else:
        rows = [(topic.name, len(topic.partitions), replicas(topic)) for topic in found]
        show_table(("topic", "partitions", "replicas"), rows, right=("partitions", "replicas"))


@topic.command()
def describe(name: Name, as_json: AsJson = False, bootstrap: Bootstrap = HERE, timeout: Timeout = PATIENCE_S) -> None:
    """Show the partitions of a topic, with leaders, replicas and offsets, and the settings it does not share."""
    with connect(bootstrap, timeout) as cluster:
        shown = description(cluster, name)
    if as_json:
        show_json(shown)
        return
    settings = "".join(f", {key}={value}" for key, value in shown["configs"].items())
    print(f"{name}, id {shown['id']}{', internal' if shown['internal'] else ''}{settings}")
    columns = ("partition", "leader", "replicas", "in sync", "first", "end")
    rows = [
        (each["partition"], each["leader"], ids(each["replicas"]), ids(each["in_sync"]), each["first"], each["end"])
        for each in shown["partitions"]
    ]
    show_table(columns, rows, right=("partition", "leader", "first", "end"))


@topic.command()
def alter(
    name: Name,
    partitions: Annotated[int | None, typer.Option("--partitions", "-p", metavar="N", help="More than now.")] = None,
    config: Configs = None,
    unset: Annotated[list[str] | None, typer.Option("--unset", metavar="NAME", help="Back to the default.")] = None,
    bootstrap: Bootstrap = HERE,
    timeout: Timeout = PATIENCE_S,
) -> None:
    """Add partitions to a topic, change its settings, or both. Keys move to other partitions when there are more."""
    from ixion.clients.configs import Resource, ResourceType, alter_configs
    from ixion.clients.topics import add_partitions

    changes: dict[str, str | None] = {**parse_pairs(config or (), "--config"), **dict.fromkeys(unset or ())}
    if partitions is None and not changes:
        raise typer.BadParameter("nothing to alter: give --partitions, --config or --unset")
    with connect(bootstrap, timeout) as cluster:
        if changes:
            alter_configs(cluster, Resource(ResourceType.TOPIC, name), changes)
        if partitions is not None:
            add_partitions(cluster, name, partitions)
    print(f"altered {name}")


@topic.command()
def delete(
    names: Names,
    if_exists: Annotated[bool, typer.Option("--if-exists", help="It may be gone already.")] = False,
    bootstrap: Bootstrap = HERE,
    timeout: Timeout = PATIENCE_S,
) -> None:
    """Delete topics and all records in them."""
    from ixion.clients.faults import UnknownTopicError
    from ixion.clients.topics import delete_topic

    with connect(bootstrap, timeout) as cluster:
        for name in names:
            try:
                delete_topic(cluster, name)
            except UnknownTopicError:
                if not if_exists:
                    raise
                print(f"{name} does not exist")
            else:
                print(f"deleted {name}")


def description(cluster: Cluster, name: str) -> dict[str, Any]:
    from ixion.clients.configs import Resource, ResourceType, describe_configs
    from ixion.clients.metadata import TopicPartition
    from ixion.clients.offsets import EARLIEST, LATEST, list_offsets
    from ixion.model.ids import id_text

    found = cluster.topic(name)
    led = [TopicPartition(name, each.number) for each in found.partitions if each.leader >= 0]
    first = list_offsets(cluster, led, EARLIEST)
    end = list_offsets(cluster, led, LATEST)
    settings = describe_configs(cluster, Resource(ResourceType.TOPIC, name))
    return {
        "topic": name,
        "id": id_text(found.topic_id),
        "internal": found.internal,
        "configs": {entry.name: entry.value for entry in settings if entry.source == "topic"},
        "partitions": [
            {
                "partition": each.number,
                "leader": each.leader if each.leader >= 0 else None,
                "leader_epoch": each.leader_epoch,
                "replicas": each.replicas,
                "in_sync": each.in_sync,
                "offline": each.offline,
                "first": first.get(TopicPartition(name, each.number)),
                "end": end.get(TopicPartition(name, each.number)),
            }
            for each in found.partitions
        ],
    }


def replicas(topic: Topic) -> int:
    return max((len(each.replicas) for each in topic.partitions), default=0)


def ids(nodes: tuple[int, ...]) -> str:
    return ",".join(map(str, nodes))
