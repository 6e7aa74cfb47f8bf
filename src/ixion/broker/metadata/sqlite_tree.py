"""The tree as one SQLite table, one row per node. The caller handles sessions, threads and transactions.

The key is (parent, name): finding a node is one lookup, and the children of a node are neighbours, already sorted.
`creates` counts the children ever created and is the sequence number of the next one, as in ZooKeeper: the number of a
deleted child is not used again.
"""

from __future__ import annotations

import sqlite3
from typing import Final

from ixion.broker.metadata.errors import (
    BadVersionError,
    InvalidPathError,
    NoChildrenForEphemeralsError,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
)
from ixion.broker.metadata.node import ANY_VERSION, Check, Create, Delete, Node, Operation, Result, Set, Stat
from ixion.broker.metadata.path_rules import ROOT, check_path, join, split
from ixion.broker.metadata.session import Event, EventKind

SCHEMA: Final = (
    """
    CREATE TABLE node (
        parent TEXT NOT NULL, name TEXT NOT NULL, data BLOB NOT NULL,
        version INTEGER NOT NULL, created_zxid INTEGER NOT NULL, modified_zxid INTEGER NOT NULL,
        created_ms INTEGER NOT NULL, modified_ms INTEGER NOT NULL,
        owner INTEGER NOT NULL, children INTEGER NOT NULL, creates INTEGER NOT NULL,
        PRIMARY KEY (parent, name)
    ) WITHOUT ROWID
    """,
    "CREATE INDEX ephemeral ON node (owner) WHERE owner != 0",
    "INSERT INTO node VALUES ('', '', x'', 0, 0, 0, 0, 0, 0, 0, 0)",
)

_STAT: Final = "version, created_zxid, modified_zxid, created_ms, modified_ms, owner, children"
_HERE: Final = "WHERE parent = ? AND name = ?"


class SqliteTree:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._run = connection.execute

    def stat(self, path: str) -> Stat | None:
        check_path(path)
        row = self._run(f"SELECT {_STAT} FROM node {_HERE}", split(path)).fetchone()  # noqa: S608 - constants
        return None if row is None else _stat(row)

    def get(self, path: str) -> Node:
        check_path(path)
        row = self._run(f"SELECT {_STAT}, data FROM node {_HERE}", split(path)).fetchone()  # noqa: S608 - constants
        if row is None:
            raise NoNodeError(path)
        return Node(data=row[7], stat=_stat(row))

    def children(self, path: str) -> list[str]:
        self._existing(path)
        return [name for (name,) in self._run("SELECT name FROM node WHERE parent = ? ORDER BY name", (path,))]

    def ephemerals(self) -> list[tuple[int, str]]:
        """Owner and path of every ephemeral node, in the order of creation."""
        rows = self._run("SELECT owner, parent, name FROM node WHERE owner != 0 ORDER BY created_zxid, parent, name")
        return [(owner, join(parent, name)) for owner, parent, name in rows]

    def apply(self, operation: Operation, zxid: int, now_ms: int, session_id: int) -> tuple[Result, list[Event]]:
        match operation:
            case Create():
                return self._create(operation, zxid, now_ms, session_id)
            case Set():
                return self._set(operation, zxid, now_ms)
            case Delete():
                return None, self.delete(operation.path, operation.version)
            case Check():
                self._at_version(operation.path, operation.version)
                return None, []

    def _create(self, wanted: Create, zxid: int, now_ms: int, session_id: int) -> tuple[str, list[Event]]:
        # A sequential path may end in a slash: then its last name is only the number.
        check_path(wanted.path + "0" if wanted.sequential else wanted.path)
        parent, _, name = wanted.path.rpartition("/")
        parent = parent or ROOT
        row = self._run(f"SELECT owner, creates FROM node {_HERE}", split(parent)).fetchone()  # noqa: S608 - constants
        if wanted.path == ROOT and not wanted.sequential:
            raise NodeExistsError(ROOT)
        if row is None:
            raise NoNodeError(parent)
        parent_owner, creates = row
        if parent_owner:
            raise NoChildrenForEphemeralsError(parent)
        if wanted.sequential:
            name = f"{name}{creates:010d}"
        path = join(parent, name)
        owner = session_id if wanted.ephemeral else 0
        values = (parent, name, wanted.data, zxid, zxid, now_ms, now_ms, owner)
        try:
            self._run("INSERT INTO node VALUES (?, ?, ?, 0, ?, ?, ?, ?, ?, 0, 0)", values)
        except sqlite3.IntegrityError:
            raise NodeExistsError(path) from None
        self._run(
            f"UPDATE node SET children = children + 1, creates = creates + 1 {_HERE}",  # noqa: S608 - constants
            split(parent),
        )
        return path, [Event(EventKind.CREATED, path), Event(EventKind.CHILDREN, parent)]

    def _set(self, wanted: Set, zxid: int, now_ms: int) -> tuple[Stat, list[Event]]:
        self._at_version(wanted.path, wanted.version)
        row = self._run(
            "UPDATE node SET data = ?, version = version + 1, modified_zxid = ?, modified_ms = ? "  # noqa: S608 - constants
            f"{_HERE} RETURNING {_STAT}",
            (wanted.data, zxid, now_ms, *split(wanted.path)),
        ).fetchone()
        return _stat(row), [Event(EventKind.CHANGED, wanted.path)]

    def delete(self, path: str, version: int = ANY_VERSION) -> list[Event]:
        if path == ROOT:
            raise InvalidPathError(ROOT, "the root cannot be deleted")
        stat = self._at_version(path, version)
        if stat.children:
            raise NotEmptyError(path)
        parent, _ = split(path)
        self._run(f"DELETE FROM node {_HERE}", split(path))  # noqa: S608 - constants
        self._run(f"UPDATE node SET children = children - 1 {_HERE}", split(parent))  # noqa: S608 - constants
        return [Event(EventKind.DELETED, path), Event(EventKind.CHILDREN, parent)]

    def _existing(self, path: str) -> Stat:
        stat = self.stat(path)
        if stat is None:
            raise NoNodeError(path)
        return stat

    def _at_version(self, path: str, version: int) -> Stat:
        stat = self._existing(path)
        if version not in (ANY_VERSION, stat.version):
            raise BadVersionError(path, version)
        return stat


def _stat(row: tuple[int, ...]) -> Stat:
    version, created_zxid, modified_zxid, created_ms, modified_ms, owner, children = row[:7]
    return Stat(
        version=version,
        created_zxid=created_zxid,
        modified_zxid=modified_zxid,
        created_ms=created_ms,
        modified_ms=modified_ms,
        owner=owner,
        children=children,
    )
