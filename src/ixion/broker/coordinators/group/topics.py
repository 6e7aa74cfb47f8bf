"""The topics of the cluster, as a group coordinator sees them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from hashlib import blake2b
from typing import NamedTuple, Protocol

from ixion.broker.metadata.image import ClusterImage


class Topic(NamedTuple):
    name: str
    topic_id: bytes
    partitions: int


class TopicLookup(Protocol):
    @property
    def version(self) -> int:
        """Grows with every change."""

    def by_name(self, name: str) -> Topic | None: ...

    def by_id(self, topic_id: bytes) -> Topic | None: ...

    def names(self) -> Collection[str]:
        """The topics that a pattern may match: all, with internal ones, as in Kafka."""


def hash_of(topics: Sequence[Topic]) -> int:
    """Differs when one of the topics was created, deleted, recreated or has grown; 0 if there are none."""
    if not topics:
        return 0
    digest = blake2b(digest_size=8)
    for topic in topics:
        digest.update(topic.topic_id + topic.partitions.to_bytes(4))
    return int.from_bytes(digest.digest(), signed=True)


class ImageTopics:
    """The topics of a ClusterImage."""

    def __init__(self, image: ClusterImage) -> None:
        self._image = image

    @property
    def version(self) -> int:
        return self._image.version

    def by_name(self, name: str) -> Topic | None:
        found = self._image.topics.get(name)
        return None if found is None else Topic(found.name, found.topic_id, len(found.partitions))

    def by_id(self, topic_id: bytes) -> Topic | None:
        found = self._image.ids.get(topic_id)
        return None if found is None else Topic(found.name, found.topic_id, len(found.partitions))

    def names(self) -> Collection[str]:
        return self._image.topics.keys()
