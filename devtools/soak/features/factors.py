"""The features of a topic, of its clients, and the faults: what `make soak-features` combines.

Values are unique, and so are keys, but for one case: an aborted record has the key of a record that was committed
before, which compaction must leave alone. So a compacted topic has every committed record at the end, too, and one
checker judges all topics.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from devtools.soak.features.covering import Row

DELAY_MS: Final = 1_500
LONGEST_DELAY_MS: Final = 3_000
LONGEST_NAME: Final = 249

OF_TOPICS: Final[Mapping[str, Sequence[str]]] = {
    "cleanup": ("delete", "compact", "compact,delete"),
    "delay": ("none", "record", "fixed", "target"),
    "compression": ("producer", "gzip", "lz4", "snappy", "zstd"),
    "stamps": ("CreateTime", "LogAppendTime"),
    "name": ("short", "longest"),
    "rolls": ("by size", "by time"),
}
OF_CLIENTS: Final[Mapping[str, Sequence[str]]] = {
    "writer": ("rd", "rd-txn", "ours", "ours-txn", "aio-txn"),
    "reader": ("rd", "rd-group", "ours", "ours-nearest", "ours-new-group"),
    "copier": ("none", "rd", "ours"),
}
FAULTS: Final = ("none", "kill", "pause", "restart", "clients", "spoil", "move", "settings", "trim")
OF_CLUSTERS: Final = ("cut", "reassign")


def factors(brokers: int) -> dict[str, Sequence[str]]:
    faults = FAULTS if brokers == 1 else (*FAULTS, *OF_CLUSTERS)
    return {**OF_TOPICS, **OF_CLIENTS, "fault": faults}


def allows(row: Row) -> bool:
    """A fixed delay counts from LogAppendTime. Consumers read the target of a schedule topic, so compaction of the
    schedule topic itself would show nothing."""
    if row.get("delay") == "fixed" and row.get("stamps") == "CreateTime":
        return False
    return row.get("delay") != "target" or row.get("cleanup", "delete") == "delete"


def settings_of(row: Row) -> dict[str, str]:
    """Of the topic that is written to."""
    found = {
        "cleanup.policy": row["cleanup"],
        "compression.type": row["compression"],
        "message.timestamp.type": row["stamps"],
        "min.cleanable.dirty.ratio": "0.01",
        "delete.retention.ms": "3600000",
        **({"segment.bytes": "20000"} if row["rolls"] == "by size" else {"segment.ms": "1500"}),
    }
    if row["delay"] == "fixed":
        found |= {"delivery.delay.mode": "fixed", "delivery.delay.ms": str(DELAY_MS)}
    elif row["delay"] in ("record", "target"):
        found |= {"delivery.delay.mode": "record"}
    return found


# What `settings` changes while clients work; nothing of it may be seen by them.
CHANGES: Final[Sequence[Mapping[str, str]]] = (
    {"segment.bytes": "30000", "retention.ms": "3600000"},
    {"segment.bytes": "1048576", "segment.ms": "700", "retention.ms": "-1"},
    {"compression.type": "zstd", "min.cleanable.dirty.ratio": "0.5", "index.interval.bytes": "100"},
    {"compression.type": "producer", "min.cleanable.dirty.ratio": "0.01", "flush.messages": "1"},
    {"max.message.bytes": "500000", "segment.bytes": "14000"},
)


def name_of(number: int, row: Row) -> str:
    name = f"case-{number}"
    return name if row["name"] == "short" else name + "-" + "n" * (LONGEST_NAME - len(name) - 1)
