"""The interface to the metadata: a tree of small versioned nodes, as in ZooKeeper.

There are two engines: the embedded one (`embedded.py`, a file in the data directory; `on_loop.py` adapts it to the
loop), and ZooKeeper (`zookeeper/`).

    path = await session.create("/brokers/ids/1", registration, ephemeral=True)
    node = await session.get("/controller_epoch")
    await session.set("/controller_epoch", b"8", version=node.stat.version)     # BadVersionError if it has changed

**Sessions.** A client of the tree has a session. `close` ends it, or it expires when nothing was heard of its client
for its timeout; then its ephemeral nodes are deleted, and their watches fire.

**Watches are persistent and carry no data.** A watch on a path reports when the node is created, set or deleted, and
when children are created or deleted (not their data), until it is cancelled or the session ends. An event means *read
again*: by then there may be further changes. After a lost connection every watch gets one RESUMED event, because events
may have been missed. (With ZooKeeper's one-shot watches, changes between the event and the next registration would be
missed, and every caller would have to read once more.)

**Order.** A read after `watch` has returned is at least as new as the watch. Events arrive one at a time, in the order
of the changes, each after its change is durable. Callbacks run on the event loop and must be quick. The caller that
made a change may see its result before the event.

**Outcomes.** After a `MetadataError` nothing has changed, with one exception: after `ConnectionLostError` a write may
have been done or not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import NamedTuple, Protocol

from ixion.broker.metadata.node import ANY_VERSION, Node, Operation, Result, Stat


class EventKind(Enum):
    CREATED = "created"
    CHANGED = "changed"
    DELETED = "deleted"
    CHILDREN = "children"
    RESUMED = "resumed"  # the connection was lost for a while: events may have been missed


class Event(NamedTuple):
    kind: EventKind
    path: str


Watcher = Callable[[Event], None]
Cancel = Callable[[], None]


class MetadataSession(Protocol):
    @property
    def session_id(self) -> int:
        """The owner of the ephemeral nodes of this session; never 0."""

    async def create(self, path: str, data: bytes = b"", *, ephemeral: bool = False, sequential: bool = False) -> str:
        """The path of the new node, with its sequence number if it has one. The parent must exist."""

    async def get(self, path: str) -> Node: ...

    async def exists(self, path: str) -> Stat | None: ...

    async def set(self, path: str, data: bytes, version: int = ANY_VERSION) -> Stat: ...

    async def delete(self, path: str, version: int = ANY_VERSION) -> None: ...

    async def children(self, path: str) -> list[str]:
        """The names, without the path, sorted."""

    async def multi(self, operations: Sequence[Operation]) -> list[Result]:
        """Do all operations in order, as one transaction, or none of them."""

    def watch(self, path: str, watcher: Watcher) -> Cancel:
        """The node need not exist. Call the result to end the watch; events already queued may still arrive."""

    @property
    def is_leased(self) -> bool:
        """Whether the session cannot have expired yet. False: nothing was heard of the tree for too long."""

    def on_expired(self, callback: Callable[[], None]) -> None:
        """Called once, when the session expires; not when it is closed."""

    async def close(self) -> None:
        """Ends the session and deletes its ephemeral nodes. A second call does nothing."""
