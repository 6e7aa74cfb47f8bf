"""What `ixion topic` says of the offsets of partitions, and how it deletes records before one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ixion.cli.options import connect
from ixion.cli.output import note, show_json, show_table

if TYPE_CHECKING:
    from ixion.clients.cluster import Cluster


def offsets(name: str, at: str | None, partition: list[int], as_json: bool, bootstrap: str, timeout: float) -> None:
    from ixion.cli.places import choose_partitions, place
    from ixion.clients.offsets import EARLIEST, LATEST, list_offsets
    from ixion.clients.starts import resolve_start

    start = None if at is None else place(at)
    with connect(bootstrap, timeout) as cluster:
        places = choose_partitions(cluster, name, partition)
        first = list_offsets(cluster, places, EARLIEST)
        end = list_offsets(cluster, places, LATEST)
        found = None if start is None else resolve_start(cluster, places, start)
    columns = ("partition", "first", "end", "at") if found is not None else ("partition", "first", "end")
    rows = [
        (each.partition, first[each], end[each], *(() if found is None else (found[each],))) for each in sorted(places)
    ]
    if as_json:
        show_json({"topic": name, **dict(zip(columns, row, strict=True))} for row in rows)
    else:
        show_table(columns, rows, right=columns)


def delete_records(
    name: str, where: str, partition: list[int], execute: bool, as_json: bool, bootstrap: str, timeout: float
) -> None:
    from ixion.cli.places import choose_partitions, place
    from ixion.clients import offsets as places_of
    from ixion.clients.starts import resolve_start

    start = place(where)
    with connect(bootstrap, timeout) as cluster:
        places = choose_partitions(cluster, name, partition)
        first = places_of.list_offsets(cluster, places, places_of.EARLIEST)
        keep = resolve_start(cluster, places, start)
        if execute:
            places_of.delete_records(cluster, keep)
    columns = ("partition", "first", "keep from", "deleted")
    rows = [(each.partition, first[each], keep[each], keep[each] - first[each]) for each in sorted(places)]
    if as_json:
        keys = ("partition", "first", "keep_from", "deleted")
        show_json({"topic": name, "executed": execute, **dict(zip(keys, row, strict=True))} for row in rows)
        return
    show_table(columns, rows, right=columns)
    if not execute:
        note("nothing was deleted; --execute does it")


def description(cluster: Cluster, name: str) -> dict[str, Any]:
    from ixion.clients.configs import Resource, describe_configs
    from ixion.clients.metadata import TopicPartition
    from ixion.clients.offsets import EARLIEST, LATEST, list_offsets
    from ixion.model.ids import id_text
    from ixion.model.resource_type import ResourceType

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
