"""One partition of a topic: its topic's name and its number, as in Kafka's TopicPartition."""

from __future__ import annotations

from typing import Final

TopicPartition = tuple[str, int]

# (last leader epoch, log end) of a broker that has no log of the partition, as after a replaced disk.
NO_LOG: Final = (-1, 0)
