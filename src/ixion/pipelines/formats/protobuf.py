"""Records in Protobuf, with the header of a schema registry or without one.

Spark's own module for it, spark-protobuf, is a jar that not every mirror has. So records are decoded in Spark's Python
workers by Google's `protobuf` package (see `protobuf_values`).

The columns are those of one message of the newest version of the subject (or of the file that is given): the first one
of the file, unless `message` names another. Behind the header comes the place of the message in the file that the
record was written with, as a list of indexes, each of them and their number a zigzag varint:

    00 00000007 00              schema 7, its first message (a single zero is short for 1 index, 0)
    00 00000007 04 02 00        2 indexes, 1 and 0: the first message inside of the second one

A record is read twice if it was written with another version: by that one, which must know all its fields, and by the
one of the columns, which may have fewer. It is bad if its bytes end too early, if a text is not valid UTF-8, if it has
fields that its schema does not have, or if it is another message.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql import types as T

from ixion.pipelines.errors import PipelineError
from ixion.pipelines.formats.added_columns import BAD_TEXT
from ixion.pipelines.formats.avro import HEADER_BYTES
from ixion.pipelines.formats.drift import unreadable_reason
from ixion.pipelines.formats.protobuf_files import NEEDS, as_bytes
from ixion.pipelines.formats.registry_records import NO_HEADER, has_header, id_reason, schema_id
from ixion.pipelines.spec.format import FormatSpec

_DATA: Final = "_data"
_LONGEST_VARINT: Final = 10  # bytes
_MOST_INDEXES: Final = 50


class Decoder:
    """From the bytes of a record to its values and, behind them, what is wrong with it. Spark sends it to its workers,
    so it holds bytes only until it is first called."""

    def __init__(self, reader: bytes, message: str | None, writers: Mapping[int, bytes], *, framed: bool) -> None:
        self._reader: Final = reader
        self._writers: Final = dict(writers)
        self._framed: Final = framed
        self.message: Final = message or _first_message(_last_file(reader)).full_name
        self._readable: _Readable | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        return _made, (self._reader, self.message, self._writers, self._framed)

    @property
    def columns(self) -> T.StructType:
        return self._ready().columns

    def __call__(self, value: bytes | bytearray | None) -> tuple[Any, ...] | None:
        if value is None:
            return None
        ready = self._ready()
        try:
            return (*ready.read(bytes(value)), None)
        except Exception as error:
            return (*ready.nulls, _why(error, self.message))

    def _ready(self) -> _Readable:
        if self._readable is None:
            self._readable = _Readable(self._reader, self.message, self._writers, framed=self._framed)
        return self._readable


class _BadRecordError(ValueError):
    """With the reason in words."""


class _Readable:
    """What a decoder is made of; it cannot be sent."""

    def __init__(self, reader: bytes, message: str, writers: Mapping[int, bytes], *, framed: bool) -> None:
        from google.protobuf import message_factory

        from ixion.pipelines.formats.protobuf_values import message_columns

        self._message: Final = message
        self._framed: Final = framed
        descriptor = _named(_last_file(reader), message)
        self.columns, self._convert = message_columns(descriptor)
        self.nulls: Final = (None,) * len(self.columns.fields)
        self._class: Final = message_factory.GetMessageClass(descriptor)
        self._numbers: Final = {field.number for field in descriptor.fields}
        self._files: Final = {number: _last_file(one) for number, one in writers.items() if one != reader}
        self._main: Final = _last_file(reader)

    def read(self, value: bytes) -> tuple[Any, ...]:
        from ixion.pipelines.formats.protobuf_values import refuse_unknown, unknown_numbers

        if not self._framed:
            return self._values(value)
        if len(value) < HEADER_BYTES or value[0] != 0:
            raise _BadRecordError(NO_HEADER)
        number = int.from_bytes(value[1:HEADER_BYTES], "big")
        indexes, start = _indexes(value, HEADER_BYTES)
        file = self._files.get(number)
        written = _at(file or self._main, indexes)
        if written is None or written.full_name != self._message:
            name = f"message {written.full_name}" if written else f"a message at {indexes}, which the schema lacks"
            raise _BadRecordError(f"a record of {name}, not of {self._message}")
        if file is None:
            return self._values(value[start:])
        from google.protobuf import message_factory

        refuse_unknown(_parsed(message_factory.GetMessageClass(written), value[start:]))
        parsed = _parsed(self._class, value[start:])
        lost = self._numbers.intersection(unknown_numbers(parsed))
        if lost:
            words = ", ".join(map(str, sorted(lost)))
            raise _BadRecordError(f"fields of another type in the newest schema: {words}")
        return tuple(self._convert(parsed))

    def _values(self, body: bytes) -> tuple[Any, ...]:
        from ixion.pipelines.formats.protobuf_values import refuse_unknown

        parsed = _parsed(self._class, body)
        refuse_unknown(parsed)
        return tuple(self._convert(parsed))


def parse_protobuf(
    frame: DataFrame,  # noqa: ARG001 - all formats are called alike
    spec: FormatSpec,
) -> tuple[list[dict[str, Column]], list[Column], Column, Column]:
    """As `parse_avro` does."""
    assert spec.schema is not None
    known = {key: schema for key, schema in spec.writers.items() if schema is not None}
    try:
        writers = {key: as_bytes(schema) for key, schema in known.items()}
        decoder = Decoder(as_bytes(spec.schema), spec.message, writers, framed=spec.registry is not None)
        columns = decoder.columns
    except ImportError:
        raise PipelineError("Protobuf's package for Python is not installed", hint=NEEDS) from None
    except (ValueError, TypeError, KeyError) as error:
        raise PipelineError(f"the Protobuf schema cannot be used: {error}") from None
    kind = T.StructType([*columns.fields, T.StructField(BAD_TEXT, T.StringType())])
    data = F.udf(decoder, kind)(F.col("value"))
    wrong = F.col(_DATA)[BAD_TEXT]
    bad = F.col(_DATA).isNull() | wrong.isNotNull()
    reason: Column | None = None
    if spec.registry is not None:
        missing = [key for key, schema in spec.writers.items() if schema is None]
        header = has_header(F.col("value"))
        reason = id_reason(F.when(~header, F.lit(NO_HEADER)), schema_id(), list(known), missing)
        bad = bad | ~header | ~schema_id().isin([*known])
    reason = unreadable_reason(F.when(F.lit(False), F.lit("")) if reason is None else reason, bad, wrong, spec.drift)
    fields = [F.col(f"{_DATA}.`{name}`").alias(name) for name in columns.names]
    return [{_DATA: data}], fields, reason, bad


def _made(reader: bytes, message: str, writers: Mapping[int, bytes], framed: bool) -> Decoder:
    return Decoder(reader, message, writers, framed=framed)


def _why(error: Exception, message: str) -> str:
    from ixion.pipelines.formats.protobuf_values import UnknownFieldsError

    known = isinstance(error, _BadRecordError | UnknownFieldsError)
    return str(error) if known else f"not a record of message {message}"


def _parsed(kind: Any, body: bytes) -> Any:
    message = kind()
    message.ParseFromString(body)
    if not message.IsInitialized():
        raise _BadRecordError(f"required fields are missing: {', '.join(message.FindInitializationErrors())}")
    return message


def _indexes(value: bytes, place: int) -> tuple[list[int], int]:
    """Where the message stands in its file, and where the record itself begins."""
    count, place = _varint(value, place)
    if count == 0:
        return [0], place
    if not 0 < count <= _MOST_INDEXES:
        raise _BadRecordError("no list of message indexes behind the header")
    found = []
    for _ in range(count):
        index, place = _varint(value, place)
        found.append(index)
    return found, place


def _varint(value: bytes, place: int) -> tuple[int, int]:
    """A zigzag number: 0, -1, 1, -2 are written as 0, 1, 2, 3."""
    number = 0
    for shift in range(_LONGEST_VARINT):
        if place >= len(value):
            raise _BadRecordError("no list of message indexes behind the header")
        byte = value[place]
        place += 1
        number |= (byte & 0x7F) << (7 * shift)
        if byte < 0x80:
            return (number >> 1) ^ -(number & 1), place
    raise _BadRecordError("no list of message indexes behind the header")


def _last_file(descriptors: bytes) -> Any:
    """The file that a descriptor set was made for."""
    from google.protobuf import descriptor_pb2, descriptor_pool
    from google.protobuf.message import DecodeError

    try:
        files = descriptor_pb2.FileDescriptorSet.FromString(descriptors).file
    except DecodeError:
        raise ValueError(
            "it is no descriptor set, such as protoc --include_imports --descriptor_set_out makes"
        ) from None
    if not files:
        raise ValueError("the descriptor set is empty")
    pool = descriptor_pool.DescriptorPool()
    for file in files:
        pool.AddSerializedFile(file.SerializeToString())
    return pool.FindFileByName(files[-1].name)


def _messages(file: Any) -> list[Any]:
    """In the order of the file."""
    from google.protobuf import descriptor_pb2

    proto = descriptor_pb2.FileDescriptorProto()
    file.CopyToProto(proto)
    return [file.message_types_by_name[one.name] for one in proto.message_type]


def _first_message(file: Any) -> Any:
    messages = _messages(file)
    if not messages:
        raise ValueError("it has no message")
    return messages[0]


def _named(file: Any, name: str) -> Any:
    try:
        return file.pool.FindMessageTypeByName(name)
    except KeyError:
        names = ", ".join(one.full_name for one in _messages(file)) or "none"
        raise ValueError(f"it has no message {name}; those at its top are {names}") from None


def _at(file: Any, indexes: list[int]) -> Any:
    """The message at this place; None if there is none. Messages that stand for the entries of maps do not count."""
    found, nested = None, _messages(file)
    for index in indexes:
        if not 0 <= index < len(nested):
            return None
        found = nested[index]
        nested = [one for one in found.nested_types if not one.GetOptions().map_entry]
    return found
