"""Nodes of the tree and the operations on them, as plain values."""

from __future__ import annotations

from typing import Final, NamedTuple

ANY_VERSION: Final = -1  # set or delete any version


class Stat(NamedTuple):
    """The attributes of a node besides its data.

    Every transaction on the tree has a number, its zxid, greater than all before it. Kafka uses the created_zxid of a
    broker's registration as the broker epoch.
    """

    version: int  # how often the data was set; 0 after creation
    created_zxid: int
    modified_zxid: int  # zxid of the last set
    created_ms: int  # since 1970
    modified_ms: int
    owner: int  # id of the session that owns an ephemeral node; 0: persistent
    children: int


class Node(NamedTuple):
    data: bytes
    stat: Stat


class Create(NamedTuple):
    """An ephemeral node is deleted with its session. A sequential one gets ten digits appended to its name."""

    path: str
    data: bytes = b""
    ephemeral: bool = False
    sequential: bool = False


class Set(NamedTuple):
    path: str
    data: bytes
    version: int = ANY_VERSION


class Delete(NamedTuple):
    path: str
    version: int = ANY_VERSION


class Check(NamedTuple):
    """Changes nothing; the whole `multi` is refused if the node is not at this version."""

    path: str
    version: int


Operation = Create | Set | Delete | Check
Result = str | Stat | None  # Create: the new path; Set: the new stat; Delete and Check: None
