"""Reads one record of Avro by its own schema, for people: no other schema is resolved, and logical types become text.

    decode('{"type": "record", "name": "Order", "fields": [{"name": "n", "type": "int"}]}', b"\\x0e")   ->  {"n": 7}

The bytes come from strangers: depth, number of values and length of the names between them are bounded, so that a few
bytes cannot make a large answer. A decimal that is too long for people stays bytes: to write one of 250 KB takes 5 s.
"""

from __future__ import annotations

import math
import struct
from base64 import b64encode
from datetime import UTC, date, datetime, timedelta
from decimal import Context, Decimal
from typing import Any, Final

MOST_VALUES: Final = 20_000
DEEPEST: Final = 50
MOST_NAMED: Final = 1 << 20  # characters of names and symbols, which are those of the schema, however often they come
DECIMAL_BYTES: Final = 64
EXACT: Final = Context(prec=3 * DECIMAL_BYTES)
EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class AvroError(ValueError):
    """The schema or the bytes cannot be read."""


def decode(schema: Any, data: bytes) -> Any:
    """A value that `json` can write. `schema` is parsed JSON. AvroError if schema or bytes cannot be read."""
    reader = Reader(data)
    try:
        found = reader.read(schema, "", 0)
    except (KeyError, TypeError, AttributeError, IndexError, ArithmeticError, RecursionError, ValueError) as error:
        raise AvroError(f"{type(error).__name__}: {error}"[:200]) from None
    if reader.at != len(data):
        raise AvroError(f"{len(data) - reader.at} bytes are left over")
    return found


class Reader:
    def __init__(self, data: bytes) -> None:
        self._data = data
        self._named: dict[str, Any] = {}
        self._values = 0
        self._named_chars = 0
        self.at = 0

    def read(self, schema: Any, space: str, depth: int) -> Any:
        """`space`: the namespace of names without one."""
        self._values += 1
        if self._values > MOST_VALUES or depth > DEEPEST:
            raise AvroError("too many values, or too deep")
        if isinstance(schema, list):
            return self.read(schema[self._index(len(schema))], space, depth + 1)
        if isinstance(schema, str):
            simple = SIMPLE.get(schema)
            if simple is not None:
                return simple(self)
            return self.read(self._named[full_name(schema, space)], space, depth + 1)
        kind = schema["type"]
        if kind in ("record", "error", "enum", "fixed"):
            name = full_name(schema["name"], schema.get("namespace", space))
            self._named[name] = schema
            space = name.rpartition(".")[0]
        if kind in ("record", "error"):
            return {self._name(each["name"]): self.read(each["type"], space, depth + 1) for each in schema["fields"]}
        if kind == "enum":
            return self._name(schema["symbols"][self._index(len(schema["symbols"]))])
        if kind == "fixed":
            return logical(schema, self.take(int(schema["size"])))
        if kind == "array":
            return [self.read(schema["items"], space, depth + 1) for _ in self._blocks()]
        if kind == "map":
            return {self.text(): self.read(schema["values"], space, depth + 1) for _ in self._blocks()}
        if kind == "bytes":
            return logical(schema, self.take(self.long()))
        return logical(schema, self.read(kind, space, depth + 1))

    def _name(self, name: str) -> str:
        self._named_chars += len(name)
        if self._named_chars > MOST_NAMED:
            raise AvroError("too many long names")
        return name

    def _index(self, count: int) -> int:
        found = self.long()
        if not 0 <= found < count:
            raise AvroError(f"there is no choice {found} of {count}")
        return found

    def _blocks(self) -> Any:
        """Counts come in blocks; a negative one is followed by the size of the block."""
        while count := self.long():
            if count < 0:
                count = -count
                self.long()
            if count > MOST_VALUES:
                raise AvroError("too many values")
            for _ in range(count):
                self._values += 1  # also of nulls, which have no bytes
                if self._values > MOST_VALUES:
                    raise AvroError("too many values")
                yield None

    def take(self, size: int) -> bytes:
        if not 0 <= size <= len(self._data) - self.at:
            raise AvroError("the bytes end too early")
        self.at += size
        return self._data[self.at - size : self.at]

    def long(self) -> int:
        found = shift = 0
        while True:
            (byte,) = self.take(1)
            found |= (byte & 0x7F) << shift
            if byte < 0x80:
                return (found >> 1) ^ -(found & 1)
            shift += 7
            if shift > 63:
                raise AvroError("a number is too long")

    def text(self) -> str:
        return self.take(self.long()).decode()


def real(value: float) -> float | str:
    return value if math.isfinite(value) else str(value)  # JSON has no NaN


SIMPLE: Final[dict[str, Any]] = {
    "null": lambda _: None,
    "boolean": lambda reader: reader.take(1) != b"\0",
    "int": Reader.long,
    "long": Reader.long,
    "float": lambda reader: real(struct.unpack("<f", reader.take(4))[0]),
    "double": lambda reader: real(struct.unpack("<d", reader.take(8))[0]),
    "bytes": lambda reader: b64encode(reader.take(reader.long())).decode(),
    "string": Reader.text,
}


def full_name(name: str, space: str) -> str:
    return name if "." in name or not space else f"{space}.{name}"


def logical(schema: dict[str, Any], value: Any) -> Any:
    kind = schema.get("logicalType")
    if isinstance(value, bytes):
        if kind == "decimal" and len(value) <= DECIMAL_BYTES:
            unscaled = Decimal(int.from_bytes(value, "big", signed=True))
            return str(unscaled.scaleb(-int(schema.get("scale", 0)), EXACT))
        return b64encode(value).decode()
    try:
        if kind == "date":
            return (date(1970, 1, 1) + timedelta(days=value)).isoformat()
        if kind in ("timestamp-millis", "timestamp-micros"):
            unit = timedelta(milliseconds=value) if kind == "timestamp-millis" else timedelta(microseconds=value)
            return (EPOCH + unit).isoformat()
    except OverflowError:
        pass  # the number itself is shown
    return value
