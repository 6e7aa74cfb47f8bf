"""Topics found on disk by a broker whose metadata is new: they become its own.

So a directory that Apache Kafka wrote can be served, and one whose metadata was lost is not lost itself. Partitions
that are missing in between are made, empty; settings of topics are not in the logs and are those of the broker.
"""

from __future__ import annotations

import logging

from ixion.controller.topics import new_partitions, operations_to_create
from ixion.log.manager import LogManager
from ixion.metadata.image import TopicImage
from ixion.metadata.node import Operation
from ixion.metadata.session import MetadataSession
from ixion.model.ids import new_id
from ixion.replica.internal_topic import INTERNAL

logger = logging.getLogger(__name__)


def adopt_logs(session: MetadataSession, logs: LogManager, broker_id: int) -> None:
    counts: dict[str, int] = {}
    ids: dict[str, bytes] = {}
    for (topic, number), log in logs.logs.items():
        counts[topic] = max(counts.get(topic, 0), number + 1)
        if log.topic_id is not None:
            ids.setdefault(topic, log.topic_id)
    operations: list[Operation] = []
    for topic, count in sorted(counts.items()):
        partitions = new_partitions([(broker_id,)] * count, [broker_id])
        config = {"cleanup.policy": "compact"} if topic in INTERNAL else {}
        image = TopicImage(name=topic, topic_id=ids.get(topic) or new_id(), partitions=partitions, config=config)
        operations += operations_to_create(image, 0)
        logger.warning("topic %s with %d partitions was found on disk and is served from now on", topic, count)
    if operations:
        session.multi(operations)
