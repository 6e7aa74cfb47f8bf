"""Topics found on disk by a broker whose metadata is new: they become its own.

So a directory that Apache Kafka wrote can be served, and one whose metadata was lost is not lost itself. Partitions
that are missing in between are made, empty; settings of topics are not in the logs and are those of the broker.
A broker that crashed after this and before it had a controller comes here again, and finds its topics known.
"""

from __future__ import annotations

import logging
from dataclasses import replace

from ixion.controller.topics import FIRST_EPOCH, new_partitions, operations_to_create
from ixion.log.log import Log
from ixion.log.manager import LogManager
from ixion.metadata import paths
from ixion.metadata.image import TopicImage
from ixion.metadata.node import Operation
from ixion.metadata.session import MetadataSession
from ixion.model.ids import new_id
from ixion.replica.internal_topic import INTERNAL

logger = logging.getLogger(__name__)


def epoch_after(log: Log | None) -> int:
    """A leader must be newer than all that wrote to its log, or readers take it for an old one."""
    return FIRST_EPOCH if log is None else max(FIRST_EPOCH, log.epochs.latest + 1)


def adopt_logs(session: MetadataSession, logs: LogManager, broker_id: int) -> None:
    counts: dict[str, int] = {}
    ids: dict[str, bytes] = {}
    for (topic, number), log in logs.logs.items():
        counts[topic] = max(counts.get(topic, 0), number + 1)
        if log.topic_id is not None:
            ids.setdefault(topic, log.topic_id)
    operations: list[Operation] = []
    known = session.children(paths.TOPICS)
    for topic, count in sorted(counts.items()):
        if topic in known:
            continue
        partitions = [
            replace(partition, leader_epoch=epoch_after(logs.get(topic, partition.number)))
            for partition in new_partitions([(broker_id,)] * count, [broker_id])
        ]
        config = {"cleanup.policy": "compact"} if topic in INTERNAL else {}
        image = TopicImage(name=topic, topic_id=ids.get(topic) or new_id(), partitions=partitions, config=config)
        operations += operations_to_create(image, 0)
        logger.warning("topic %s with %d partitions was found on disk and is served from now on", topic, count)
    if operations:
        session.multi(operations)
