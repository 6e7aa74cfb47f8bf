"""Features that clients ask about, and the levels the broker can run at.

`group.version` 1 allows the consumer protocol (KIP-848); `transaction.version` 2 is an epoch per transaction (KIP-890),
by which clients stop announcing partitions. `metadata.version` is a number that Kafka's tools want to see: that of 4.3.
"""

from __future__ import annotations

from typing import Final

SUPPORTED: Final[dict[str, tuple[int, int]]] = {
    "group.version": (0, 1),
    "metadata.version": (7, 30),
    "transaction.version": (0, 2),
}
# What is in force on a new cluster.
INITIAL: Final[dict[str, int]] = {"group.version": 1, "metadata.version": 30, "transaction.version": 2}
# What is in force where the tree does not name it: ixion 0.1 wrote no level of these features, but had them.
UNNAMED: Final[dict[str, int]] = {"group.version": 1}
