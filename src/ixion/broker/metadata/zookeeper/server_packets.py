"""The server's side of ZooKeeper's client protocol: reads requests and writes responses.

`packets.py` has the client's side, and the numbers that both use.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from ixion.broker.metadata import errors
from ixion.broker.metadata.node import Check, Create, Delete, Operation, Result, Set, Stat
from ixion.broker.metadata.session import EventKind
from ixion.broker.metadata.zookeeper.jute import JuteError, JuteReader, put_bool, put_int, put_long, put_string
from ixion.broker.metadata.zookeeper.packets import BAD_VERSION, NO_NODE, OK, ROLLED_BACK, SESSION_EXPIRED, Op, frame

WORDS: Final = frozenset((b"ruok", b"isro", b"envi", b"srvr", b"stat"))
VERSION: Final = "3.6.0-ixion"  # the ZooKeeper version whose features the tree has

SYSTEM_ERROR: Final = -1
UNIMPLEMENTED: Final = -6
BAD_ARGUMENTS: Final = -8
INVALID_ACL: Final = -114

_CODES: Final[dict[type[errors.MetadataError], int]] = {
    errors.NoNodeError: NO_NODE,
    errors.BadVersionError: BAD_VERSION,
    errors.NodeExistsError: -110,
    errors.NotEmptyError: -111,
    errors.NoChildrenForEphemeralsError: -108,
    errors.SessionExpiredError: SESSION_EXPIRED,
    errors.AccessDeniedError: INVALID_ACL,
    errors.UnsupportedError: UNIMPLEMENTED,
    errors.InvalidPathError: BAD_ARGUMENTS,
}
_EVENT_TYPES: Final = {
    EventKind.CREATED: 1,
    EventKind.DELETED: 2,
    EventKind.CHANGED: 3,
    EventKind.CHILDREN: 4,
}
_CONNECTED: Final = 3  # the connection state in an event
_EVERYBODY: Final = (31, "world", "anyone")  # the open ACL, the only one that the tree accepts
_END: Final = put_int(-1) + put_bool(True) + put_int(-1)  # end of the results of a multi
_NO_STAT: Final = Stat(version=0, created_zxid=0, modified_zxid=0, created_ms=0, modified_ms=0, owner=0, children=0)

ACCESS_LIST: Final = put_int(1) + put_int(_EVERYBODY[0]) + put_string(_EVERYBODY[1]) + put_string(_EVERYBODY[2])


def code_for(error: errors.MetadataError) -> int:
    return _CODES.get(type(error), SYSTEM_ERROR)


# Requests.


@dataclass(frozen=True, slots=True)
class Hello:
    """A connect request. A session id of 0 means a new session."""

    last_zxid: int
    timeout_ms: int
    session_id: int
    password: bytes


def read_hello(data: bytes) -> Hello:
    """Older clients omit the read-only flag at the end, so everything after the password is ignored."""
    reader = JuteReader(data)
    reader.read_int()  # version of the protocol
    return Hello(reader.read_long(), reader.read_int(), reader.read_long(), reader.buffer())


def read_create(reader: JuteReader) -> Create:
    path, data = reader.string(), reader.buffer()
    entries = [(reader.read_int(), reader.string(), reader.string()) for _ in range(_count(reader))]
    flags = reader.read_int()
    if entries != [_EVERYBODY]:
        raise errors.AccessDeniedError(path)
    if flags not in (0, 1, 2, 3):
        raise errors.UnsupportedError(path, "containers and nodes with a time to live are not supported")
    return Create(path, data, ephemeral=bool(flags & 1), sequential=bool(flags & 2))


def read_set(reader: JuteReader) -> Set:
    return Set(reader.string(), reader.buffer(), reader.read_int())


def read_delete(reader: JuteReader) -> Delete:
    return Delete(reader.string(), reader.read_int())


def read_check(reader: JuteReader) -> Check:
    return Check(reader.string(), reader.read_int())


class Multi:
    def __init__(self) -> None:
        self.kinds: list[int] = []  # as requested: the response to "create2" has a stat, that to "create" has none
        self.operations: list[Operation] = []
        self.fault: errors.MetadataError | None = None  # error of the first unsupported operation


def read_multi(reader: JuteReader) -> Multi:
    multi = Multi()
    while True:
        kind, done = reader.read_int(), reader.read_bool()
        reader.read_int()
        if done:
            return multi
        multi.kinds.append(kind)
        try:
            multi.operations.append(_read_operation(kind, reader))
        except errors.MetadataError as error:
            if multi.fault is None:
                error.operation = len(multi.operations)
                multi.fault = error
            multi.operations.append(Check("/", -1))


def _read_operation(kind: int, reader: JuteReader) -> Operation:
    match kind:
        case Op.CREATE | Op.CREATE_1:
            return read_create(reader)
        case Op.SET:
            return read_set(reader)
        case Op.DELETE:
            return read_delete(reader)
        case Op.CHECK:
            return read_check(reader)
    raise JuteError(f"a multi has an operation of type {kind}")


def _count(reader: JuteReader) -> int:
    count = reader.read_int()
    if count > reader.left:
        raise JuteError(f"{count} entries cannot be in {reader.left} bytes")
    return max(count, 0)


# Responses.


def about(word: bytes, zxid: int) -> bytes:
    """The response to one of `WORDS`."""
    match word:
        case b"ruok":
            return b"imok"
        case b"isro":
            return b"rw"
        case b"envi":
            return f"Environment:\nzookeeper.version={VERSION}\n".encode()
    return f"Zookeeper version: {VERSION}\nZxid: {zxid:#x}\nMode: standalone\n".encode()


def welcome(timeout_ms: int, session_id: int, password: bytes) -> bytes:
    """A timeout of 0 means that the session has expired."""
    body = put_int(0) + put_int(timeout_ms) + put_long(session_id) + put_int(len(password)) + password
    return frame(body + put_bool(False))


def answer(xid: int, zxid: int, code: int = OK, body: bytes = b"") -> bytes:
    return frame(put_int(xid) + put_long(zxid) + put_int(code) + body)


def event(kind: EventKind, path: str) -> bytes:
    return answer(-1, -1, OK, put_int(_EVENT_TYPES[kind]) + put_int(_CONNECTED) + put_string(path))


def put_stat(stat: Stat, size: int) -> bytes:
    """`size` is that of the data. The tree does not store how often and when children changed: clients get 0 and the
    zxid of the creation."""
    return b"".join(
        (
            put_long(stat.created_zxid),
            put_long(stat.modified_zxid),
            put_long(stat.created_ms),
            put_long(stat.modified_ms),
            put_int(stat.version),
            put_int(0),  # changes of the children
            put_int(0),  # changes of the ACL
            put_long(stat.owner),
            put_int(size),
            put_int(stat.children),
            put_long(stat.created_zxid),
        )
    )


def put_node(data: bytes, stat: Stat) -> bytes:
    """A node without data has an empty buffer: the tree does not distinguish null from empty."""
    return put_int(len(data)) + data + put_stat(stat, len(data))


def put_results(multi: Multi, results: Sequence[Result], stats: Mapping[str, Stat]) -> bytes:
    """`stats` has the stats of created nodes, by path. A node that a later operation deleted has none."""
    packed = bytearray()
    for kind, operation, result in zip(multi.kinds, multi.operations, results, strict=True):
        packed += put_int(kind) + put_bool(False) + put_int(OK)
        size = len(operation.data) if isinstance(operation, Create | Set) else 0
        if isinstance(result, str):
            packed += put_string(result)
            if kind == Op.CREATE:
                packed += put_stat(stats.get(result, _NO_STAT), size)
        elif result is not None:
            packed += put_stat(result, size)
    return bytes(packed) + _END


def put_refused(count: int, refused: int, code: int) -> bytes:
    """The response to a multi of `count` operations, of which the one with index `refused` was refused."""
    packed = bytearray()
    for index in range(count):
        each = OK if index < refused else code if index == refused else ROLLED_BACK
        packed += put_int(-1) + put_bool(False) + put_int(each) + put_int(each)
    return bytes(packed) + _END
