"""`ixion cluster`: the brokers, and what their disks hold."""

from __future__ import annotations

from typing import Final

from ixion.cli.access import CLUSTER, Access
from ixion.cli.command import Command, Group, Option
from ixion.cli.options import AS_JSON, administer
from ixion.cli.output import counted, show_json, show_table


def info(as_json: bool, access: Access) -> None:
    from ixion.clients.admin.routes import metadata

    with administer(access) as admin:
        found = admin.run(metadata, None)
    partitions = [part for topic in found.topics.values() for part in topic.partitions]
    behind = sum(len(part.in_sync) < len(part.replicas) for part in partitions)
    leaderless = sum(part.leader < 0 for part in partitions)
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
    totals = {
        "topics": sum(not topic.internal for topic in found.topics.values()),
        "partitions": len(partitions),
        "under_replicated": behind,
        "leaderless": leaderless,
    }
    if as_json:
        show_json([{"cluster": found.cluster_id, "controller": found.controller, **totals, "brokers": brokers}])
        return
    print(
        f"cluster {found.cluster_id}, {counted(totals['topics'], 'topic')}, {counted(len(partitions), 'partition')}"
        f" ({behind} under-replicated, {leaderless} without a leader)"
    )
    columns = ("broker", "host", "port", "rack", "controller", "leads", "replicas")
    rows = [["yes" if cell is True else "" if cell is False else cell for cell in row.values()] for row in brokers]
    show_table(columns, rows, right=("broker", "port", "leads", "replicas"))


def log_dirs(topic: list[str], as_json: bool, access: Access) -> None:
    from ixion.clients.admin.replicas import describe_log_dirs
    from ixion.clients.admin.topics import describe_topics
    from ixion.model.errors import ErrorCode

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
    "Show the brokers, and what their disks hold.",
    Command(
        "info",
        "Show the cluster's id, its controller, and its brokers with what they lead.",
        info,
        options=(AS_JSON, *CLUSTER),
        aliases=("describe", "list", "ls"),
    ),
    Command(
        "log-dirs",
        "Show the log directories of all brokers, and how much lies in each.",
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
)
