"""`ixion cluster`: brokers, troubled partitions, moves between brokers, and disk usage."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ixion.cli.access import CLUSTER, Access
from ixion.cli.cluster.moves import DRAIN, ELECT, REASSIGN
from ixion.cli.cluster.up import DOWN, KILL, STATUS, TREE, UP
from ixion.cli.command import Command, Group, Option
from ixion.cli.options import AS_JSON, administer
from ixion.cli.output import counted, note, show_json, show_table
from ixion.clients.metadata import TopicPartition

if TYPE_CHECKING:
    from ixion.clients.admin.replicas import Reassignment
    from ixion.clients.metadata import Partition

MOST_ROWS: Final = 50
SETS: Final = ("replicas", "in_sync", "adding", "removing")


def describe(as_json: bool, access: Access) -> None:
    from ixion.clients.admin.replicas import list_partition_reassignments
    from ixion.clients.admin.routes import metadata

    with administer(access) as admin:
        found = admin.run(metadata, None)
        moves = admin.run(list_partition_reassignments)
    partitions = [part for topic in found.topics.values() for part in topic.partitions]
    brokers = [
        {
            "broker": node.node_id,
            "host": node.address.host,
            "port": node.address.port,
            "rack": node.rack,
            "controller": node.node_id == found.controller,
            "leads": sum(part.leader == node.node_id for part in partitions),
            "replicas": sum(node.node_id in part.replicas for part in partitions),
        }
        for node in sorted(found.nodes.values())
    ]
    troubled = [
        row
        for name, topic in sorted(found.topics.items())
        for part in topic.partitions
        if (row := trouble(TopicPartition(name, part.number), part, moves.get(TopicPartition(name, part.number))))
    ]
    totals = {
        "topics": sum(not topic.internal for topic in found.topics.values()),
        "partitions": len(partitions),
        "under_replicated": sum(len(part.in_sync) < len(part.replicas) for part in partitions),
        "leaderless": sum(part.leader < 0 for part in partitions),
        "reassigning": len(moves),
    }
    if as_json:
        whole = {"cluster": found.cluster_id, "controller": found.controller, **totals, "brokers": brokers}
        show_json([{**whole, "troubled": troubled}])
        return
    behind, leaderless = totals["under_replicated"], totals["leaderless"]
    moving = f", {len(moves)} being reassigned" if moves else ""
    print(
        f"cluster {found.cluster_id}, {counted(totals['topics'], 'topic')}, {counted(len(partitions), 'partition')}"
        f" ({behind} under-replicated, {leaderless} without a leader{moving})"
    )
    columns = ("broker", "host", "port", "rack", "controller", "leads", "replicas")
    rows = [["yes" if cell is True else "" if cell is False else cell for cell in row.values()] for row in brokers]
    show_table(columns, rows, right=("broker", "port", "leads", "replicas"))
    if troubled:
        print()
        columns = ("partition", "state", "leader", "replicas", "in sync", "adding", "removing")
        shown = [
            [f"{row['topic']}-{row['partition']}", row["state"], row["leader"], *(ids(row[each]) for each in SETS)]
            for row in troubled[:MOST_ROWS]
        ]
        show_table(columns, shown, right=("leader",))
        if len(troubled) > MOST_ROWS:
            note(f"{len(troubled) - MOST_ROWS} more partitions are not shown; --json has all of them")


def trouble(place: TopicPartition, part: Partition, move: Reassignment | None) -> dict[str, Any] | None:
    """The problem of a partition; None if there is none."""
    if part.leader < 0:
        state = "no leader"
    elif move is not None:
        state = "being reassigned"
    elif len(part.in_sync) < len(part.replicas):
        state = "under-replicated"
    else:
        return None
    return {
        "topic": place.topic,
        "partition": place.partition,
        "state": state,
        "leader": part.leader if part.leader >= 0 else None,
        "replicas": part.replicas,
        "in_sync": part.in_sync,
        "adding": () if move is None else move.adding,
        "removing": () if move is None else move.removing,
    }


def ids(nodes: tuple[int, ...]) -> str:
    return ",".join(map(str, nodes))


def log_dirs(topic: list[str], as_json: bool, access: Access) -> None:
    from ixion.clients.admin.replicas import describe_log_dirs
    from ixion.clients.admin.topics import describe_topics
    from ixion.language.model.errors import ErrorCode

    with administer(access) as admin:
        admin.run(describe_topics, topic).check()  # an unknown one is reported with the nearest name
        found = admin.run(describe_log_dirs)
    rows = []
    for each in found:
        replicas = [replica for replica in each.replicas if not topic or replica.partition.topic in topic]
        rows.append(
            {
                "broker": each.broker,
                "directory": each.path,
                "replicas": len(replicas),
                "bytes": sum(replica.size for replica in replicas),
                "free": each.free,
                "total": each.total,
                "state": "ok" if each.error is ErrorCode.NONE else each.error.name.lower(),
            }
        )
        if as_json:
            rows[-1]["partitions"] = [
                {
                    "topic": replica.partition.topic,
                    "partition": replica.partition.partition,
                    "bytes": replica.size,
                    "lag": replica.lag,
                    "future": replica.is_future,
                }
                for replica in sorted(replicas)
            ]
    if as_json:
        show_json(rows)
    else:
        columns = ("broker", "directory", "replicas", "bytes", "free", "total", "state")
        show_table(
            columns, [list(row.values()) for row in rows], right=("broker", "replicas", "bytes", "free", "total")
        )


CLUSTER_GROUP: Final = Group(
    "cluster",
    "Start brokers on this machine, show them, move partitions between them, elect leaders.",
    UP,
    STATUS,
    DOWN,
    KILL,
    Command(
        "describe",
        "Show brokers, controller, partitions that are leaderless or under-replicated, and running moves.",
        describe,
        options=(AS_JSON, *CLUSTER),
        aliases=("info", "list", "ls"),
    ),
    REASSIGN,
    DRAIN,
    ELECT,
    Command(
        "log-dirs",
        "Show the log directories of all brokers, and the size of each.",
        log_dirs,
        options=(
            Option(
                "topic",
                "--topic -t",
                "Count only this topic; may be repeated.",
                metavar="TOPIC",
                many=True,
                complete="topic",
            ),
            AS_JSON,
            *CLUSTER,
        ),
    ),
    TREE,
)
