"""The protocol by which the broker sees its metadata: a tree of small versioned nodes, as ZooKeeper has it.

One engine is embedded (`EmbeddedStore`, a file in the data directory); a ZooKeeper client fits behind the same lines.

    path = session.create("/brokers/ids/1", registration, ephemeral=True)
    node = session.get("/controller_epoch")
    session.set("/controller_epoch", b"8", version=node.stat.version)     # BadVersionError if another was faster

**Sessions.** A client of the tree has a session. It ends by `close`, or expires when its holder was silent for its
timeout; its ephemeral nodes are deleted in that moment, and their watches fire.

**Watches are persistent and carry no data.** A watch on a path tells of the node created, set and deleted, and of
its children created and deleted (not of their data), until it is cancelled or the session is over. An event means
*read again*: by then there may be several changes, or the node may be back. An engine that lost contact for a while
tells every watch once contact is back, because it may have missed something. ZooKeeper's one-shot watches would
leave a gap between the event and the next registration in which every caller would have to read once more.

**Order.** Events arrive one at a time, in the order of the changes, each after its change is durable. Callbacks run on
a thread of the engine's choosing, which may be the one that made the change; they must be quick, and may use the
session. The caller that made a change may see its result before the event.

**Threads.** All methods may be called from any thread. They block for one flush to the disk, or one round trip.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

from ixion.metadata.node import ANY_VERSION, Node, Operation, Result, Stat


class EventKind(Enum):
    CREATED = "created"
    CHANGED = "changed"
    DELETED = "deleted"
    CHILDREN = "children"


@dataclass(frozen=True, slots=True)
class Event:
    kind: EventKind
    path: str


Watcher = Callable[[Event], None]
Cancel = Callable[[], None]


class MetadataSession(Protocol):
    @property
    def session_id(self) -> int:
        """The owner of the ephemeral nodes made here; never 0."""

    def create(self, path: str, data: bytes = b"", *, ephemeral: bool = False, sequential: bool = False) -> str:
        """The path of the new node, with its sequence number if it has one. The parent must exist."""

    def get(self, path: str) -> Node: ...

    def exists(self, path: str) -> Stat | None: ...

    def set(self, path: str, data: bytes, version: int = ANY_VERSION) -> Stat: ...

    def delete(self, path: str, version: int = ANY_VERSION) -> None: ...

    def children(self, path: str) -> list[str]:
        """The names, without the path, sorted."""

    def multi(self, operations: Sequence[Operation]) -> list[Result]:
        """All of the operations, in order and as one transaction, or none of them."""

    def watch(self, path: str, watcher: Watcher) -> Cancel:
        """The node need not exist. Calling the result ends the watch; events already under way may still arrive."""

    def on_expired(self, callback: Callable[[], None]) -> None:
        """Called once, when the session expires; not when it is closed."""

    def close(self) -> None:
        """Ends the session and deletes its ephemeral nodes. Doing it twice is harmless."""
