"""Steps from record to record through uncompressed record bytes, and checks every length it reads.

The only parser of records. `step()` stores positions and sizes as machine integers and makes no objects. So validation,
which needs counts and times, and iteration, which needs keys and values, both use it: about 20 ns for a 100-byte
record, compiled.

Example, the record ``0e 00 02 04 02 61 01 00`` at offset base + 2: length 7, attributes 0, timestamp delta +1, offset
delta +2, key of one byte ``61``, null value, no headers. After the step: `timestamp_delta` 1, `offset_delta` 2,
`key_start` 5, `key_size` 1, `value_size` -1, `header_count` 0, `position` 8.

Every length is checked against the end of its own record before it is used, and the record must end exactly where its
length says. A varint is at most 5 bytes (10 for the timestamp) and its value must fit its width. A null header key is
refused, as in Kafka. Header keys are bytes here; `Record.headers` decodes them.

Not thread-safe: one walker belongs to one caller.
"""

from __future__ import annotations

from time import sleep
from typing import Final, final

from ixion._native import i64, mypyc_attr
from ixion.language.records.faults import LongWorkError, invalid

# The sum of two numbers within +-FAR fits 64 bits. FAR is also the largest power of two that compiled code keeps in a
# register: it treats the two limits below as objects, which are slower.
FAR: Final = 1 << 61
MAX_I64: Final = 0x7FFFFFFFFFFFFFFF
MIN_I64: Final = -0x8000000000000000
# Headers after which other threads may run: compiled code keeps the interpreter until it calls something that lets go.
BREATH: Final = 0x7FFF


@final
@mypyc_attr(acyclic=True)
class Walker:
    """A position in record bytes; `step()` moves it by one record."""

    def __init__(self, data: bytes, position: i64, end: i64) -> None:
        """Walk ``data[position:end]``. The caller ensures ``0 <= position <= end <= len(data)``."""
        self.data = data
        self.position: i64 = position
        self.end: i64 = end
        self.allowed: i64 = FAR  # records and headers that may still be stepped over; LongWorkError after that
        # The last record. `*_start` and `header_position` are indexes into `data`; a size of -1 means null.
        self.timestamp_delta: i64 = 0
        self.offset_delta: i64 = 0
        self.key_start: i64 = 0
        self.key_size: i64 = -1
        self.value_start: i64 = 0
        self.value_size: i64 = -1
        self.header_position: i64 = 0
        self.header_count: i64 = 0

    def missing(self) -> i64:
        """How many bytes beyond `end` the next record needs: 0 if it is whole, 1 if even its length is incomplete."""
        data = self.data
        at: i64 = self.position
        shift: i64 = 0
        size: i64 = 0
        while at < self.end:
            byte: i64 = data[at]
            at += 1
            size |= (byte & 0x7F) << shift
            if byte < 0x80:
                size = (size >> 1) ^ -(size & 1)
                return max(at + size - self.end, 0)
            shift += 7
            if shift > 28:
                return 0  # malformed; step() raises
        return 1

    def step(self) -> None:
        """Move over one record; KafkaError (INVALID_RECORD) if it is not exactly one well-formed record."""
        limit: i64 = self.end
        size = self.varint(limit)
        stop: i64 = self.position + size
        if size < 0 or stop > limit:
            raise invalid(f"a record claims {size} bytes; {limit - self.position} are left in its batch")
        self.position += 1  # the attributes of a record are unused
        self.timestamp_delta = self.varlong(stop)
        self.offset_delta = self.varint(stop)
        self.key_size = self.varint(stop)
        self.key_start = self.position
        if self.key_size > 0:
            self.skip(self.key_size, stop)
        elif self.key_size < -1:
            raise invalid(f"a key of {self.key_size} bytes")
        self.value_size = self.varint(stop)
        self.value_start = self.position
        if self.value_size > 0:
            self.skip(self.value_size, stop)
        elif self.value_size < -1:
            raise invalid(f"a value of {self.value_size} bytes")
        count = self.varint(stop)
        self.header_count = count
        self.header_position = self.position
        if count != 0:
            # A header has at least two bytes, which bounds the count by the bytes left.
            if count < 0 or count > (stop - self.position) // 2:
                raise invalid(f"a record claims {count} headers in {stop - self.position} bytes")
            self.allowed -= count
            if self.allowed < 0:
                raise LongWorkError
            while count > 0:
                if count & BREATH == BREATH:
                    sleep(0)
                size = self.varint(stop)
                if size < 0:
                    raise invalid("a header without a key")
                self.skip(size, stop)
                size = self.varint(stop)
                if size > 0:
                    self.skip(size, stop)
                elif size < -1:
                    raise invalid(f"a header value of {size} bytes")
                count -= 1
        if self.position != stop:
            raise invalid(f"{stop - self.position} bytes follow the last field of a record")

    def timestamp(self, base: i64) -> i64:
        """The timestamp of the last record, in milliseconds; KafkaError if it does not fit 64 bits."""
        delta: i64 = self.timestamp_delta
        if -FAR < base < FAR and -FAR < delta < FAR:
            return base + delta
        if (delta > 0 and base > MAX_I64 - delta) or (delta < 0 and base < MIN_I64 - delta):
            raise invalid(f"timestamp {base} {delta:+} is beyond 64 bits")
        return base + delta

    def skip(self, size: i64, stop: i64) -> None:
        if size > stop - self.position:
            raise invalid(f"a field claims {size} bytes; {stop - self.position} are left in its record")
        self.position += size

    def varint(self, stop: i64) -> i64:
        """A zigzag number of 32 bits, all its bytes before `stop`."""
        at: i64 = self.position
        if at >= stop:
            raise invalid("a record ends before its fields do")
        data = self.data
        byte: i64 = data[at]
        at += 1
        value: i64 = byte & 0x7F
        shift: i64 = 7
        while byte >= 0x80:
            if shift > 28:
                raise invalid("a varint of more than 5 bytes")
            if at >= stop:
                raise invalid("a record ends inside a varint")
            byte = data[at]
            at += 1
            value |= (byte & 0x7F) << shift
            shift += 7
        if value > 0xFFFFFFFF:
            raise invalid("a varint beyond 32 bits")
        self.position = at
        return (value >> 1) ^ -(value & 1)

    def varlong(self, stop: i64) -> i64:
        """A zigzag number of 64 bits, all its bytes before `stop`."""
        at: i64 = self.position
        data = self.data
        value: i64 = 0
        shift: i64 = 0
        while True:
            if at >= stop:
                raise invalid("a record ends inside a timestamp")
            byte: i64 = data[at]
            at += 1
            if shift == 63 and byte > 1:
                raise invalid("a timestamp beyond 64 bits")
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                break
            shift += 7
        self.position = at
        half: i64 = value >> 1
        if value < 0:
            half &= MAX_I64  # the shift copied the sign bit: clear it, as an unsigned shift would
        return half ^ -(value & 1)
