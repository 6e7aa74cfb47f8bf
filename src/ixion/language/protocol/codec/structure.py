"""Structures: fields in order and, in flexible versions, tagged fields behind them.

The tagged fields are a varint count, then for each a varint tag, a varint size and the value, tags ascending. A tag
that this version does not know is skipped without making an object for it; a known one must fill its size
exactly. A tagged field at its default is not written at all.

Values are made without their constructor, which would check and sort its keywords. A *draft*, an instance of the same
class without the guard that freezes it, is filled field by field and then gets the frozen class.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from ixion._native import i64
from ixion.language.protocol.codec.cursor import TAGGED_FIELD_LIMIT, Cursor
from ixion.language.protocol.codec.sink import Sink
from ixion.language.protocol.codec.wire_type import WireType
from ixion.language.protocol.flaws import DecodeError, EncodeError


class Field:
    """A field as one version writes it. `tag` is -1 for fields in order."""

    def __init__(self, name: str, wire_type: WireType, default: object, tag: i64) -> None:
        self.name = name
        self.wire_type = wire_type
        self.default = default
        self.tag: i64 = tag


class Absent:
    """A field that this version lacks. Reading gives its default; writing another value fails unless `ignorable`."""

    def __init__(self, name: str, default: object, ignorable: bool) -> None:
        self.name = name
        self.default = default
        self.ignorable = ignorable


class Structure(WireType):
    def __init__(
        self,
        frozen: type,
        draft: type,
        fields: list[Field],
        tagged: list[Field],
        absent: list[Absent],
        flexible: bool,
    ) -> None:
        size: i64 = 1 if flexible else 0
        fixed = not flexible
        flat = True
        for field in fields:
            size += field.wire_type.min_size
            fixed = fixed and field.wire_type.fixed
            flat = flat and field.wire_type.flat
        # At least 1: an element of no bytes would let an array of any length fit into any frame.
        super().__init__(size if size > 0 else 1, fixed and size > 0, flat)
        self.frozen = frozen
        self.draft = draft
        self.fields = fields
        self.tagged = tagged
        self.absent = absent
        self.guarded = [field for field in absent if not field.ignorable]
        self.flexible = flexible

    def check(self, cursor: Cursor) -> None:
        for field in self.fields:
            try:
                field.wire_type.check(cursor)
            except DecodeError as error:
                error.within(field.name)
                raise
        if self.flexible:
            self._check_tagged(cursor)

    def check_steps(self, cursor: Cursor) -> Generator[None, None, None]:
        for field in self.fields:
            try:
                if field.wire_type.flat:
                    field.wire_type.check(cursor)
                else:
                    yield from field.wire_type.check_steps(cursor)
            except DecodeError as error:
                error.within(field.name)
                raise
        if self.flexible:
            self._check_tagged(cursor)

    def _check_tagged(self, cursor: Cursor) -> None:
        count = cursor.uvarint()
        if count == 0:
            return
        if count > TAGGED_FIELD_LIMIT:
            cursor.fail(f"{count} tagged fields; at most {TAGGED_FIELD_LIMIT} are read")
        cursor.claim(count, 2)
        last: i64 = -1
        while count > 0:
            tag = cursor.uvarint()
            if tag <= last:
                cursor.fail(f"tag {tag} after tag {last}")
            last = tag
            size = cursor.uvarint()
            start = cursor.pos
            cursor.skip(size)
            for field in self.tagged:
                if field.tag == tag:
                    self._check_one_tagged(cursor, field, start)
            count -= 1

    def _check_one_tagged(self, cursor: Cursor, field: Field, start: i64) -> None:
        """Check the value of a known tag: it must use exactly the bytes it claimed, and reads none beyond them."""
        frame_end = cursor.end
        cursor.end = cursor.pos
        cursor.pos = start
        try:
            field.wire_type.check(cursor)
            if cursor.pos != cursor.end:
                cursor.fail(f"{cursor.end - cursor.pos} bytes left over in a tagged field")
        except DecodeError as error:
            error.within(field.name)
            raise
        cursor.end = frame_end

    def read(self, cursor: Cursor) -> object:
        value: Any = self.draft()
        for field in self.fields:
            setattr(value, field.name, field.wire_type.read(cursor))
        self._read_rest(cursor, value)
        value.__class__ = self.frozen
        return value

    def read_steps(self, cursor: Cursor) -> Generator[None, None, object]:
        value: Any = self.draft()
        for field in self.fields:
            if field.wire_type.flat:
                setattr(value, field.name, field.wire_type.read(cursor))
            else:
                item = yield from field.wire_type.read_steps(cursor)
                setattr(value, field.name, item)
        self._read_rest(cursor, value)
        value.__class__ = self.frozen
        return value

    def _read_rest(self, cursor: Cursor, value: object) -> None:
        for missing in self.absent:
            setattr(value, missing.name, missing.default)
        if self.flexible:
            for field in self.tagged:
                setattr(value, field.name, field.default)
            self._read_tagged(cursor, value)

    def _read_tagged(self, cursor: Cursor, value: object) -> None:
        count = cursor.uvarint()
        while count > 0:
            tag = cursor.uvarint()
            size = cursor.uvarint()
            end = cursor.pos + size
            for field in self.tagged:
                if field.tag == tag:
                    setattr(value, field.name, field.wire_type.read(cursor))
            cursor.pos = end
            count -= 1

    def write(self, sink: Sink, value: object) -> None:
        self._guard(value)
        for field in self.fields:
            try:
                field.wire_type.write(sink, getattr(value, field.name))
            except EncodeError as error:
                error.within(field.name)
                raise
        if self.flexible:
            self._write_tagged(sink, value)

    def write_steps(self, sink: Sink, value: object) -> Generator[None, None, None]:
        self._guard(value)
        for field in self.fields:
            try:
                if field.wire_type.flat:
                    field.wire_type.write(sink, getattr(value, field.name))
                else:
                    yield from field.wire_type.write_steps(sink, getattr(value, field.name))
            except EncodeError as error:
                error.within(field.name)
                raise
        if self.flexible:
            self._write_tagged(sink, value)

    def _guard(self, value: object) -> None:
        """Refuse what this version cannot carry."""
        if type(value) is not self.frozen:
            raise EncodeError(f"{type(value).__name__} is not a {self.frozen.__name__}")
        for missing in self.guarded:
            held: object = getattr(value, missing.name)
            if held is not missing.default and held != missing.default:
                error = EncodeError(f"this version has no such field, and its value is {held!r}")
                error.within(missing.name)
                raise error

    def _write_tagged(self, sink: Sink, value: object) -> None:
        if not self.tagged:
            sink.out.append(0)
            return
        present: list[Field] = []
        for field in self.tagged:
            held: object = getattr(value, field.name)
            if held is not field.default and held != field.default:
                present.append(field)
        sink.uvarint(len(present))
        for field in present:
            inner = Sink()
            try:
                field.wire_type.write(inner, getattr(value, field.name))
            except EncodeError as error:
                error.within(field.name)
                raise
            encoded = inner.finish_bytes()
            sink.uvarint(field.tag)
            sink.uvarint(len(encoded))
            sink.data(encoded, len(encoded))


class NullableStructure(WireType):
    """A structure that may be null. A byte in front is 1 if it follows; for null it is -1, in a tagged field 0."""

    def __init__(self, structure: Structure, tagged: bool) -> None:
        super().__init__(1, False, structure.flat)
        self.structure = structure
        self.tagged = tagged

    def _follows(self, cursor: Cursor) -> bool:
        marker = cursor.data[cursor.pos - 1]
        return marker > 0 if self.tagged else marker < 128

    def check(self, cursor: Cursor) -> None:
        cursor.skip(1)
        if self._follows(cursor):
            self.structure.check(cursor)

    def read(self, cursor: Cursor) -> object:
        cursor.pos += 1
        return self.structure.read(cursor) if self._follows(cursor) else None

    def write(self, sink: Sink, value: object) -> None:
        if value is None:
            sink.out.append(0 if self.tagged else 255)
        else:
            sink.out.append(1)
            self.structure.write(sink, value)

    def check_steps(self, cursor: Cursor) -> Generator[None, None, None]:
        cursor.skip(1)
        if self._follows(cursor):
            yield from self.structure.check_steps(cursor)

    def read_steps(self, cursor: Cursor) -> Generator[None, None, object]:
        cursor.pos += 1
        if not self._follows(cursor):
            return None
        value = yield from self.structure.read_steps(cursor)
        return value

    def write_steps(self, sink: Sink, value: object) -> Generator[None, None, None]:
        if value is None:
            sink.out.append(0 if self.tagged else 255)
        else:
            sink.out.append(1)
            yield from self.structure.write_steps(sink, value)
