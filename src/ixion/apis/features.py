"""Features that clients ask about, and the levels the broker can run at.

`group.version` 1 are the groups of KIP-848; `transaction.version` 2 is an epoch per transaction (KIP-890), by which
clients stop announcing partitions. `metadata.version` is a number that Kafka's tools want to see; ours says 4.3.
"""

from __future__ import annotations

from typing import Final

SUPPORTED: Final[dict[str, tuple[int, int]]] = {
    "metadata.version": (7, 30),
    "transaction.version": (0, 2),
}
# What is in force on a new cluster.
INITIAL: Final[dict[str, int]] = {"metadata.version": 30, "transaction.version": 2}
