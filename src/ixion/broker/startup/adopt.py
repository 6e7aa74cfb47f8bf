"""Adopts topics that are found on disk when the metadata is new.

So a directory that Apache Kafka wrote can be served, and a directory that has lost its metadata keeps its topics.
Missing partitions are created empty. A broker that crashes after this and before it has a controller adopts again, and
finds its topics known.

**Nothing is deleted.** The settings of a topic are not in its logs. With the broker's defaults, a topic that was to be
kept for ever would lose its records at the first retention check. So an adopted topic gets settings under which nothing
is deleted (`KEEP_ALL`), until the user changes them. They are in force from the moment the logs are loaded.

The internal topics stay compacted, as in every Kafka. That loses nothing: their records are states by key, coordinators
read only the last record of each key, and compaction keeps it. Retention by time or size does not apply to a topic that
is only compacted. Without compaction these topics, and the time of each start, would grow without bound. Coordinators
expire entries by settings of the broker (offsets.retention.minutes, transactional.id.expiration.ms), which the warning
at the start names.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from typing import Final

from ixion.broker.controller.planning import FIRST_EPOCH, new_partitions
from ixion.broker.controller.topic_nodes import operations_to_create
from ixion.broker.log.checkpoint import LEADER_EPOCHS, read_epochs
from ixion.broker.log.corrupt import CorruptFileError
from ixion.broker.log.files import Files
from ixion.broker.log.manager import LogManager
from ixion.broker.metadata import paths
from ixion.broker.metadata.image import TopicImage
from ixion.broker.metadata.node import Operation
from ixion.broker.metadata.session import MetadataSession
from ixion.broker.replica.internal_topic import INTERNAL, SHARE_STATE
from ixion.language.model.delay_names import is_sibling
from ixion.language.model.ids import new_id
from ixion.language.model.topic_partition import TopicPartition

logger = logging.getLogger(__name__)

KEEP_ALL: Final[Mapping[str, str]] = {"cleanup.policy": "delete", "retention.ms": "-1", "retention.bytes": "-1"}
COMPACTED: Final[Mapping[str, str]] = {"cleanup.policy": "compact"}
MOST_SHOWN: Final = 10  # names in the warning


def epoch_after(logs: LogManager, key: TopicPartition) -> int:
    """The next leader epoch of a log: a leader with an older epoch than its records would look outdated to readers."""
    log = logs.get(*key)
    latest = log.epochs.latest if log is not None else -1
    for directory in logs.directories:
        for folder, parsed in directory.unloaded.items():
            if (parsed.topic, parsed.partition) == key:
                latest = max(latest, written_epoch(logs.files, folder))
    return max(FIRST_EPOCH, latest + 1)


def written_epoch(files: Files, folder: str) -> int:
    """The last epoch of a log that could not be loaded, from its checkpoint."""
    try:
        epochs = read_epochs(files, os.path.join(folder, LEADER_EPOCHS))
    except (CorruptFileError, OSError):
        return -1
    return epochs[-1][0] if epochs else -1


def settings_to_adopt(topic: str) -> dict[str, str]:
    """The settings of a topic that is found on disk and is not in the metadata."""
    return dict(COMPACTED if topic in INTERNAL and topic != SHARE_STATE else KEEP_ALL)


async def adopt_logs(session: MetadataSession, logs: LogManager, broker_id: int) -> None:
    counts: dict[str, int] = {}
    ids: dict[str, bytes] = {}
    folders = [(folder.topic, folder.partition) for each in logs.directories for folder in each.unloaded.values()]
    for topic, number in [*logs.logs, *folders]:  # with logs that cannot be loaded now, but may be later
        if is_sibling(topic):
            continue
        counts[topic] = max(counts.get(topic, 0), number + 1)
    for (topic, _), log in logs.logs.items():
        if log.topic_id is not None and not is_sibling(topic):
            ids.setdefault(topic, log.topic_id)
    operations: list[Operation] = []
    known = await session.children(paths.TOPICS)
    adopted = {topic: count for topic, count in sorted(counts.items()) if topic not in known}
    for topic, count in adopted.items():
        partitions = [
            partition._replace(leader_epoch=epoch_after(logs, (topic, partition.number)))
            for partition in new_partitions([(broker_id,)] * count, [broker_id])
        ]
        image = TopicImage(
            name=topic, topic_id=ids.get(topic) or new_id(), partitions=partitions, config=settings_to_adopt(topic)
        )
        operations += operations_to_create(image, 0)
    if operations:
        await session.multi(operations)
        report(adopted)


def report(adopted: Mapping[str, int]) -> None:
    names = list(adopted)
    shown = ", ".join(names[:MOST_SHOWN]) + (f" and {len(names) - MOST_SHOWN} more" if len(names) > MOST_SHOWN else "")
    kept = ", ".join(f"{name}={value}" for name, value in KEEP_ALL.items())
    inside = " and ".join(sorted((INTERNAL - {SHARE_STATE}) & adopted.keys()))
    logger.warning(
        "adopted %d topics with %d partitions found on disk: %s. They keep every record (%s) until you change these"
        " settings%s",
        len(adopted),
        sum(adopted.values()),
        shown,
        kept,
        f"; {inside} stay compacted, and entries expire by offsets.retention.minutes and transactional.id.expiration.ms"
        if inside
        else "",
    )
