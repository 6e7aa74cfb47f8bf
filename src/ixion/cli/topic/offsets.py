"""Offsets of partitions for `ixion topic`, and its deletion of records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ixion.cli.access import Access
from ixion.cli.options import administer
from ixion.cli.output import note, show_json, show_table

if TYPE_CHECKING:
    from ixion.clients.admin.runner import AdminRunner
    from ixion.clients.metadata import Partition, TopicPartition


def offsets(name: str, at: str | None, partition: list[int], as_json: bool, access: Access) -> None:
    from ixion.cli.places import place
    from ixion.clients.admin.starts import choose_partitions, ends, resolve_start

    start = None if at is None else place(at)
    with administer(access) as admin:
        places = admin.run(choose_partitions, name, partition)
        first, end = admin.run(ends, places)
        found = None if start is None else admin.run(resolve_start, places, start)
    columns = ("partition", "first", "end", "at") if found is not None else ("partition", "first", "end")
    rows = [
        (each.partition, first[each], end[each], *(() if found is None else (found[each],))) for each in sorted(places)
    ]
    if as_json:
        show_json({"topic": name, **dict(zip(columns, row, strict=True))} for row in rows)
    else:
        show_table(columns, rows, right=columns)


def delete_records(name: str, where: str, partition: list[int], execute: bool, as_json: bool, access: Access) -> None:
    from ixion.cli.places import place
    from ixion.clients.admin import offsets as plans
    from ixion.clients.admin.starts import choose_partitions, ends, resolve_start

    start = place(where)
    with administer(access) as admin:
        places = admin.run(choose_partitions, name, partition)
        first, _ = admin.run(ends, places)
        keep = admin.run(resolve_start, places, start)
        if execute:
            admin.run(plans.delete_records, keep).check()
    columns = ("partition", "first", "keep from", "deleted")
    rows = [(each.partition, first[each], keep[each], keep[each] - first[each]) for each in sorted(places)]
    if as_json:
        keys = ("partition", "first", "keep_from", "deleted")
        show_json({"topic": name, "executed": execute, **dict(zip(keys, row, strict=True))} for row in rows)
        return
    show_table(columns, rows, right=columns)
    if not execute:
        note("nothing was deleted; add --execute to do it")


def description(admin: AdminRunner, name: str) -> dict[str, Any]:
    from ixion.clients.admin.configs import Resource, describe_configs
    from ixion.clients.admin.offsets import list_replica_ends
    from ixion.clients.admin.starts import ends
    from ixion.clients.admin.topics import describe_topics
    from ixion.clients.metadata import TopicPartition
    from ixion.language.model.ids import id_text
    from ixion.language.model.resource_type import ResourceType

    found = admin.run(describe_topics, [name])[name]
    led = [TopicPartition(name, each.number) for each in found.partitions if each.leader >= 0]
    first, end = admin.run(ends, led)
    copied = [each for each in found.partitions if len(each.replicas) > 1]
    log_ends = admin.run(
        list_replica_ends, [(TopicPartition(name, each.number), node) for each in copied for node in alive(each)]
    )
    resource = Resource(ResourceType.TOPIC, name)
    settings = admin.run(describe_configs, [resource])[resource]
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
                "lag": lags(each, TopicPartition(name, each.number), log_ends),
                "first": first.get(TopicPartition(name, each.number)),
                "end": end.get(TopicPartition(name, each.number)),
            }
            for each in found.partitions
        ],
    }


def alive(partition: Partition) -> list[int]:
    return [node for node in partition.replicas if node not in partition.offline]


def lags(
    partition: Partition, place: TopicPartition, log_ends: dict[int, dict[TopicPartition, int]]
) -> dict[str, int | None]:
    """By follower, its lag behind the leader in records; None if unknown."""
    end = log_ends.get(partition.leader, {}).get(place)
    found: dict[str, int | None] = {}
    for node in partition.replicas:
        if node != partition.leader:
            own = log_ends.get(node, {}).get(place)
            found[str(node)] = None if end is None or own is None else max(0, end - own)
    return found
