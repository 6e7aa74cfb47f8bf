"""The protocol by which the broker sees its metadata: a tree of small versioned nodes, as ZooKeeper has it.

There are two engines: the embedded one (`embedded.py`, a file in the data directory, on the loop by `on_loop.py`), and
ZooKeeper (`zookeeper/`).

    path = await session.create("/brokers/ids/1", registration, ephemeral=True)
    node = await session.get("/controller_epoch")
    await session.set("/controller_epoch", b"8", version=node.stat.version)     # BadVersionError if another was faster

**Sessions.** A client of the tree has a session. It ends by `close`, or expires when its holder was silent for its
timeout; then its ephemeral nodes are deleted, and their watches fire.

**Watches are persistent and carry no data.** A watch on a path reports the node created, set and deleted, and its
children created and deleted (not their data), until it is cancelled or the session is over. An event means *read
again*: by then there may be several changes, or the node may be back. An engine that was out of contact for a while
sends every watch one RESUMED event, because it may have missed something. ZooKeeper's one-shot watches would leave a
gap between the event and the next registration, in which every caller would have to read once more.

**Order.** What is read after `watch` has returned is at least as new as the watch. Events arrive one at a time, in the
order of the changes, each after its change is durable. Callbacks run on the event loop; they must be quick. The caller
that made a change may see its result before the event.

**Outcomes.** A `MetadataError` says that nothing has changed, with one exception: after `ConnectionLostError` a write
may have been done or not.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from typing import NamedTuple, Protocol

from ixion.metadata.node import ANY_VERSION, Node, Operation, Result, Stat


class EventKind(Enum):
    CREATED = "created"
    CHANGED = "changed"
    DELETED = "deleted"
    CHILDREN = "children"
    RESUMED = "resumed"  # the engine was out of contact for a while: anything may have happened


class Event(NamedTuple):
    kind: EventKind
    path: str


Watcher = Callable[[Event], None]
Cancel = Callable[[], None]


class MetadataSession(Protocol):
    @property
    def session_id(self) -> int:
        """The owner of the ephemeral nodes made here; never 0."""

    async def create(self, path: str, data: bytes = b"", *, ephemeral: bool = False, sequential: bool = False) -> str:
        """The path of the new node, with its sequence number if it has one. The parent must exist."""

    async def get(self, path: str) -> Node: ...

    async def exists(self, path: str) -> Stat | None: ...

    async def set(self, path: str, data: bytes, version: int = ANY_VERSION) -> Stat: ...

    async def delete(self, path: str, version: int = ANY_VERSION) -> None: ...

    async def children(self, path: str) -> list[str]:
        """The names, without the path, sorted."""

    async def multi(self, operations: Sequence[Operation]) -> list[Result]:
        """All of the operations, in order and as one transaction, or none of them."""

    def watch(self, path: str, watcher: Watcher) -> Cancel:
        """The node need not exist. Calling the result ends the watch; events already under way may still arrive."""

    @property
    def is_leased(self) -> bool:
        """Whether it cannot have expired yet. False: the tree was silent for so long that it may have."""

    def on_expired(self, callback: Callable[[], None]) -> None:
        """Called once, when the session expires; not when it is closed."""

    async def close(self) -> None:
        """Ends the session and deletes its ephemeral nodes. Doing it twice is harmless."""
