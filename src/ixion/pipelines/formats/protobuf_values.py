"""From Protobuf's messages to rows. It runs in Spark's Python workers too, and needs Google's `protobuf` package.

    int32, sint32, sfixed32     INT             uint32, fixed32             BIGINT
    int64, sint64, sfixed64     BIGINT          uint64, fixed64             DECIMAL(20, 0)
    enum                        STRING, the name of the value; its number if the schema has no name for it
    google.protobuf.Timestamp   TIMESTAMP, in microseconds; StringValue and its like: the type in them
    repeated, map, message      ARRAY, MAP, STRUCT

A field that can be told to be absent (a message, `optional`, one of a `oneof`) is null if it is; any other one has
its default. A message that contains itself has no columns, and is refused.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any, Final

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.unknown_fields import UnknownFieldSet
from pyspark.sql import types as T

Convert = Callable[[Any], Any]
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_WRAPPERS: Final = {
    f"google.protobuf.{name}Value"
    for name in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
}
_KINDS: Final[dict[int, T.DataType]] = {
    FieldDescriptor.CPPTYPE_INT32: T.IntegerType(),
    FieldDescriptor.CPPTYPE_INT64: T.LongType(),
    FieldDescriptor.CPPTYPE_UINT32: T.LongType(),
    FieldDescriptor.CPPTYPE_UINT64: T.DecimalType(20, 0),
    FieldDescriptor.CPPTYPE_DOUBLE: T.DoubleType(),
    FieldDescriptor.CPPTYPE_FLOAT: T.FloatType(),
    FieldDescriptor.CPPTYPE_BOOL: T.BooleanType(),
    FieldDescriptor.CPPTYPE_ENUM: T.StringType(),
}


class UnknownFieldsError(ValueError):
    """A message has fields that its schema does not have."""


class RecursiveError(ValueError):
    """A message contains itself."""


def message_columns(message: Descriptor) -> tuple[T.StructType, Convert]:
    """The columns of MESSAGE, and a function that gives their values in a tuple."""
    return _struct(message, ())


def unknown_numbers(message: Any) -> list[int]:
    return sorted({field.field_number for field in UnknownFieldSet(message)})


def refuse_unknown(message: Any) -> None:
    """At this level and at all levels below."""
    if numbers := unknown_numbers(message):
        words = ", ".join(map(str, numbers))
        raise UnknownFieldsError(f"fields that {message.DESCRIPTOR.full_name} does not have: {words}")
    for field, value in message.ListFields():
        if field.message_type is None:
            continue
        if field.message_type.GetOptions().map_entry:
            inner = value.values() if field.message_type.fields_by_name["value"].message_type else ()
        else:
            inner = value if field.is_repeated else (value,)
        for one in inner:
            refuse_unknown(one)


def _struct(message: Descriptor, above: tuple[str, ...]) -> tuple[T.StructType, Convert]:
    if message.full_name in above:
        raise RecursiveError(f"message {message.full_name} contains itself, which columns cannot show")
    above = (*above, message.full_name)
    fields, reads = [], []
    for field in message.fields:
        kind, read = _field(field, above)
        fields.append(T.StructField(field.name, kind))
        reads.append(read)

    def convert(value: Any) -> tuple[Any, ...]:
        return tuple([read(value) for read in reads])

    return T.StructType(fields), convert


def _field(field: FieldDescriptor, above: tuple[str, ...]) -> tuple[T.DataType, Convert]:
    """Its type, and a function from the message that has it to its value."""
    name = field.name
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        key, key_of = _value(field.message_type.fields_by_name["key"], above)
        kind, of = _value(field.message_type.fields_by_name["value"], above)
        return T.MapType(key, kind), lambda it: {key_of(one): of(value) for one, value in getattr(it, name).items()}
    kind, of = _value(field, above)
    if field.is_repeated:
        return T.ArrayType(kind), lambda it: [of(one) for one in getattr(it, name)]
    if field.has_presence:
        return kind, lambda it: of(getattr(it, name)) if it.HasField(name) else None
    return kind, lambda it: of(getattr(it, name))


def _value(field: FieldDescriptor, above: tuple[str, ...]) -> tuple[T.DataType, Convert]:
    if field.message_type is not None:
        if field.message_type.full_name == "google.protobuf.Timestamp":
            return T.TimestampType(), _time
        if field.message_type.full_name in _WRAPPERS:
            kind, of = _value(field.message_type.fields_by_name["value"], above)
            return kind, lambda it: of(it.value)
        return _struct(field.message_type, above)
    if field.cpp_type == FieldDescriptor.CPPTYPE_STRING:
        is_bytes = field.type == FieldDescriptor.TYPE_BYTES
        return (T.BinaryType(), bytearray) if is_bytes else (T.StringType(), _same)
    if field.cpp_type == FieldDescriptor.CPPTYPE_ENUM:
        names = {value.number: value.name for value in reversed(field.enum_type.values)}  # of two names, the first
        return T.StringType(), lambda number: names.get(number) or str(number)
    return _KINDS[field.cpp_type], Decimal if field.cpp_type == FieldDescriptor.CPPTYPE_UINT64 else _same


def _same(value: Any) -> Any:
    return value


def _time(value: Any) -> datetime:
    """Raises OverflowError if it is before the year 1 or after 9999."""
    return _EPOCH + timedelta(seconds=value.seconds, microseconds=value.nanos // 1000)
