"""Messages that are stored instead of sent: two bytes of version in front, then the fields.

For the records of __consumer_offsets and __transaction_state the two bytes of a key are not a version but the type of
the record, and its value carries the version: key `00 01` + group, topic, partition; value `00 03` + offset ...
"""

# This module is compiled: see setup.py.

from __future__ import annotations

from typing import Any, Final, TypeVar, cast

from ixion.language.protocol import resolve
from ixion.language.protocol.codec.message import MessageCodec
from ixion.language.protocol.codec.sink import Sink
from ixion.language.protocol.flaws import DecodeError, UnsupportedVersionError
from ixion.language.protocol.notation import Struct, StructMeta

PREFIX_SIZE: Final = 2

T = TypeVar("T", bound=Struct)

_codecs: dict[tuple[StructMeta, int], MessageCodec] = {}


def codec(table: StructMeta, version: int) -> MessageCodec:
    """The codec of a stored table, for the fields without the prefix."""
    known = _codecs.get((table, version))
    if known is None:
        if not resolve.holds(table.within, version):
            raise UnsupportedVersionError(table.__name__, version)
        flexible = resolve.holds(table.flexible, version)
        known = _codecs[table, version] = resolve.message(table.__name__, table, version, flexible)
    return known


def encode(value: Struct, version: int) -> bytes:
    """Version and fields."""
    return _prefixed(version, codec(type(value), version), value)


def decode(table: type[T], data: bytes) -> T:
    """The value after the version in front. A version newer than the table is refused, as in Kafka."""
    return cast(T, codec(table, prefix(table.__name__, data)).decode(data, PREFIX_SIZE))


def encode_key(record_type: int, key: Struct) -> bytes:
    """Record type and fields of a key; keys have only one version."""
    return _prefixed(record_type, codec(type(key), 0), key)


def decode_key(table: type[T], data: bytes) -> T:
    """The key after its record type, by which the caller has chosen the table (see `record_type`)."""
    return cast(T, codec(table, 0).decode(data, PREFIX_SIZE))


def record_type(data: bytes) -> int:
    """The record type of a key."""
    return prefix("record key", data)


def prefix(name: str, data: bytes) -> int:
    if len(data) < PREFIX_SIZE:
        error = DecodeError("the two bytes in front are missing", 0)
        error.of(name, -1)
        raise error
    return int.from_bytes(data[:PREFIX_SIZE], signed=True)


def _prefixed(number: int, message: MessageCodec, value: Any) -> bytes:
    sink = Sink()
    sink.out.write(number.to_bytes(PREFIX_SIZE, signed=True))
    message.write(sink, value)
    return sink.finish_bytes()
