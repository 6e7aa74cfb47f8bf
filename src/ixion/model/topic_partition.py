"""One partition of a topic: its topic's name and its number, as in Kafka's TopicPartition."""

from __future__ import annotations

from typing import Final

TopicPartition = tuple[str, int]

# In place of the last leader epoch and the end of a log: the broker has none, as on a disk that was replaced.
NO_LOG: Final = (-1, 0)
