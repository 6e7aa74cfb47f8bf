"""The features of the cluster, and the levels that the broker supports.

`group.version` 1 allows the consumer protocol (KIP-848). `transaction.version` 2 gives every transaction its own epoch
(KIP-890); with it, clients no longer send AddPartitionsToTxn. `share.version` 1 allows share groups (KIP-932),
`streams.version` 1 streams groups (KIP-1071).
`metadata.version` is that of Kafka 4.3, for Kafka's tools.
"""

from __future__ import annotations

from typing import Final

SUPPORTED: Final[dict[str, tuple[int, int]]] = {
    "group.version": (0, 1),
    "metadata.version": (7, 30),
    "share.version": (0, 1),
    "streams.version": (0, 1),
    "transaction.version": (0, 2),
}
# The levels of a new cluster.
INITIAL: Final[dict[str, int]] = {
    "group.version": 1,
    "metadata.version": 30,
    "share.version": 1,
    "streams.version": 1,
    "transaction.version": 2,
}
# The levels of features that the tree of a lone broker does not contain, because an older ixion has made it.
UNNAMED: Final[dict[str, int]] = {"group.version": 1, "share.version": 1, "streams.version": 1}
