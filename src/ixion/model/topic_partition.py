"""One partition of a topic: its topic's name and its number, as in Kafka's TopicPartition."""

from __future__ import annotations

TopicPartition = tuple[str, int]
