"""Requests and responses of ZooKeeper's client protocol: writes the bodies of requests, reads those of responses.

Only what the broker needs: nodes, transactions, persistent watches (ZooKeeper 3.6 and newer), authentication. A request
is `length, xid, type, body`; its response `length, xid, zxid, error, body`. Responses come in the order of the
requests.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Final

from ixion.broker.metadata import errors
from ixion.broker.metadata.node import Check, Create, Delete, Node, Operation, Result, Set, Stat
from ixion.broker.metadata.session import EventKind
from ixion.broker.metadata.zookeeper.jute import (
    JuteError,
    JuteReader,
    put_bool,
    put_buffer,
    put_int,
    put_long,
    put_string,
)


class Op(IntEnum):
    """ "other clients": our client does not use it, but our server supports it."""

    CREATE_1 = 1  # other clients: the response has only the path
    DELETE = 2
    EXISTS = 3
    GET = 4
    SET = 5
    GET_ACL = 6  # other clients
    CHILDREN = 8
    SYNC = 9  # other clients
    PING = 11
    CHILDREN_2 = 12  # other clients: the response has the stat
    CHECK = 13
    MULTI = 14
    CREATE = 15  # "create2": the response has the stat
    REMOVE_WATCHES = 18
    AUTH = 100
    SET_WATCHES = 101  # other clients: add the watches of an earlier connection again
    SASL = 102
    SET_WATCHES_2 = 105  # other clients: the same, including persistent ones
    ADD_WATCH = 106
    CLOSE = -11


WATCH_XID: Final = -1
PING_XID: Final = -2
AUTH_XID: Final = -4

NO_PASSWORD: Final = bytes(16)

OK: Final = 0
ROLLED_BACK: Final = -2  # in the response to a multi: this operation comes after the refused one
NO_NODE: Final = -101
BAD_VERSION: Final = -103
SESSION_EXPIRED: Final = -112
_ERRORS: Final[dict[int, Callable[[str], errors.MetadataError]]] = {
    NO_NODE: errors.NoNodeError,
    -110: errors.NodeExistsError,
    -111: errors.NotEmptyError,
    -108: errors.NoChildrenForEphemeralsError,
    SESSION_EXPIRED: lambda path: errors.SessionExpiredError(path, "ZooKeeper has ended the session"),
    -102: lambda path: errors.AccessDeniedError(path),
    -114: lambda path: errors.AccessDeniedError(path),
    -6: lambda path: errors.UnsupportedError(path, "the server is older than ZooKeeper 3.6"),
}

_EVENTS: Final = {
    1: EventKind.CREATED,
    2: EventKind.DELETED,
    3: EventKind.CHANGED,
    4: EventKind.CHILDREN,
}

ALL_RIGHTS: Final = 31
READ_RIGHT: Final = 1
# ACLs: vectors of (rights, scheme, id). "auth" is the identity that this session has proven to the server.
_OPEN: Final = put_int(1) + put_int(ALL_RIGHTS) + put_string("world") + put_string("anyone")
_OWN: Final = put_int(ALL_RIGHTS) + put_string("auth") + put_string("")
_SECRET: Final = put_int(1) + _OWN
_READABLE: Final = put_int(2) + _OWN + put_int(READ_RIGHT) + put_string("world") + put_string("anyone")
# As in Kafka: keys of users, settings of brokers and tokens are nobody else's; consumers of old write to /consumers.
_SECRET_PATHS: Final = ("/config/users", "/config/brokers", "/delegation_token")
_OPEN_PATH: Final = "/consumers"
_PERSISTENT_WATCH: Final = 0
_ANY_WATCHER: Final = 3


def error_for(code: int, path: str, version: int = -1) -> errors.MetadataError:
    if code == BAD_VERSION:
        return errors.BadVersionError(path, version)
    make = _ERRORS.get(code)
    return errors.RefusedError(path, f"ZooKeeper returned error {code}") if make is None else make(path)


# Opening a session.


@dataclass(frozen=True, slots=True)
class Welcome:
    """The response to a connect request. A timeout of 0 means that the session has expired."""

    timeout_ms: int
    session_id: int
    password: bytes


def connect_request(last_zxid: int, timeout_ms: int, session_id: int, password: bytes) -> bytes:
    body = put_int(0) + put_long(last_zxid) + put_int(timeout_ms) + put_long(session_id)
    return frame(body + put_buffer(password) + put_bool(False))  # False: do not accept a read-only server


def read_welcome(data: bytes) -> Welcome:
    reader = JuteReader(data)
    reader.read_int()
    return Welcome(reader.read_int(), reader.read_long(), reader.buffer())


def frame(packet: bytes) -> bytes:
    return put_int(len(packet)) + packet


PING: Final = frame(put_int(PING_XID) + put_int(Op.PING))


def auth_request(scheme: str, credentials: bytes) -> bytes:
    body = put_int(0) + put_string(scheme) + put_buffer(credentials)
    return frame(put_int(AUTH_XID) + put_int(Op.AUTH) + body)


# Bodies of requests.


def sasl_body(token: bytes) -> bytes:
    return put_int(len(token)) + token  # not null, even if it is empty: ZooKeeper's SASL fails on null


def acl_of(path: str, secure: bool) -> bytes:
    """The ACL of a new node; `path` without the chroot. `secure`: zookeeper.set.acl."""
    if not secure or path == _OPEN_PATH:
        return _OPEN
    return _SECRET if path.startswith(_SECRET_PATHS) else _READABLE


def create_body(operation: Create, chroot: str, secure: bool = False) -> bytes:
    acl = acl_of(operation.path, secure)
    flags = (1 if operation.ephemeral else 0) | (2 if operation.sequential else 0)
    return put_string(chroot + operation.path) + put_buffer(operation.data) + acl + put_int(flags)


def path_body(path: str) -> bytes:
    """For get, exists and children, without a one-shot watch."""
    return put_string(path) + put_bool(False)


def set_body(path: str, data: bytes, version: int) -> bytes:
    return put_string(path) + put_buffer(data) + put_int(version)


def version_body(path: str, version: int) -> bytes:
    """For delete and check."""
    return put_string(path) + put_int(version)


def add_watch_body(path: str) -> bytes:
    return put_string(path) + put_int(_PERSISTENT_WATCH)


def remove_watches_body(path: str) -> bytes:
    return put_string(path) + put_int(_ANY_WATCHER)


def multi_body(operations: Sequence[Operation], chroot: str, secure: bool = False) -> bytes:
    packed = bytearray()
    for operation in operations:
        path = full_path(chroot, operation.path)
        match operation:
            case Create():
                kind, body = Op.CREATE, create_body(operation, chroot, secure)
            case Set():
                kind, body = Op.SET, set_body(path, operation.data, operation.version)
            case Delete():
                kind, body = Op.DELETE, version_body(path, operation.version)
            case Check():
                kind, body = Op.CHECK, version_body(path, operation.version)
        packed += put_int(kind) + put_bool(False) + put_int(-1) + body
    return bytes(packed) + put_int(-1) + put_bool(True) + put_int(-1)


def full_path(chroot: str, path: str) -> str:
    return chroot + path if path != "/" else chroot or "/"


# Responses.


def read_stat(reader: JuteReader) -> Stat:
    created_zxid, modified_zxid = reader.read_long(), reader.read_long()
    created_ms, modified_ms = reader.read_long(), reader.read_long()
    version = reader.read_int()
    reader.read_int()  # changes of the children
    reader.read_int()  # changes of the ACL
    owner = reader.read_long()
    reader.read_int()  # length of the data
    children = reader.read_int()
    reader.read_long()  # zxid of the last change of the children
    return Stat(
        version=version,
        created_zxid=created_zxid,
        modified_zxid=modified_zxid,
        created_ms=created_ms,
        modified_ms=modified_ms,
        owner=owner,
        children=children,
    )


def read_node(reader: JuteReader) -> Node:
    return Node(data=reader.buffer(), stat=read_stat(reader))


def read_created(chroot: str) -> Callable[[JuteReader], str]:
    def read(reader: JuteReader) -> str:
        return reader.string().removeprefix(chroot)

    return read


def read_nothing(_reader: JuteReader) -> None:
    return None


def read_token(reader: JuteReader) -> bytes:
    return reader.buffer()


def read_names(reader: JuteReader) -> list[str]:
    return sorted(reader.strings())


def read_multi(operations: Sequence[Operation], chroot: str) -> Callable[[JuteReader], list[Result]]:
    """Raises the error of the refused operation; ZooKeeper reports those before it as rolled back, with error 0."""

    def read(reader: JuteReader) -> list[Result]:
        results: list[Result] = []
        codes: list[int] = []
        for _ in operations:
            kind, done = reader.read_int(), reader.read_bool()
            reader.read_int()
            if done:
                raise JuteError("a multi has fewer results than operations")
            if kind == -1:
                codes.append(reader.read_int())
            elif kind in (1, Op.CREATE):
                results.append(read_created(chroot)(reader))
                if kind == Op.CREATE:
                    read_stat(reader)
            elif kind == Op.SET:
                results.append(read_stat(reader))
            elif kind in (Op.DELETE, Op.CHECK):
                results.append(None)
            else:
                raise JuteError(f"a multi has a result of type {kind}")
        for index, code in enumerate(codes):
            if code not in (OK, ROLLED_BACK):
                operation = operations[index]
                error = error_for(code, operation.path, getattr(operation, "version", -1))
                error.operation = index
                raise error
        if codes:
            raise errors.RefusedError("/", "ZooKeeper rolled back a transaction without a reason")
        return results

    return read


def read_event(reader: JuteReader, chroot: str) -> tuple[EventKind, str] | None:
    """None for an event about the session or about watches, which concerns no node."""
    kind = _EVENTS.get(reader.read_int())
    reader.read_int()  # the state of the connection, always connected here
    path = reader.string()
    if kind is None:
        return None
    return kind, path.removeprefix(chroot) or "/"


Read = Callable[[JuteReader], Any]
