"""The files that `ixion read` writes, each under a temporary name until all of it is written.

Parquet and Arrow have the columns of Spark's Kafka connector (see `clients.consumer.arrow`). CSV has the same, with a
line of names: timestamps in milliseconds, bytes as UTF-8 text or, if they are none, `base64:` and their base64; null is
an empty field without quotes, an empty value one with them; headers are JSON, as `ixion consume --json` writes them.
"""

from __future__ import annotations

import json
import os
from base64 import b64encode
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from ixion.cli.record_json import show_bytes
from ixion.clients.metadata import TopicPartition
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.records.columns import Columns

if TYPE_CHECKING:
    import pyarrow

# A row group of Parquet: many readers work on one at a time, and its columns are compressed as a whole.
GROUP_BYTES = 64 * 1024 * 1024


class RowFile(Protocol):
    rows: int

    def write(self, place: TopicPartition, columns: Columns, count: int) -> None:
        """Write the first `count` rows of the columns."""

    def close(self) -> None: ...


@contextmanager
def open_file(path: Path, *, headers: bool) -> Iterator[RowFile]:
    """A file of the kind of its suffix. It gets its name when the block ends without an error."""
    temporary = path.with_name(f".{path.name}.partial-{os.getpid()}")
    try:
        file = make_file(path.suffix, temporary, headers)
        try:
            yield file
        finally:
            file.close()
        temporary.replace(path)
    except OSError as error:
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"cannot write {path}: {error.strerror or error}") from None
    finally:
        temporary.unlink(missing_ok=True)


def make_file(suffix: str, path: Path, headers: bool) -> RowFile:
    if suffix == ".csv":
        return CsvFile(path, headers)
    try:
        return ParquetFile(path, headers) if suffix == ".parquet" else ArrowFile(path, headers)
    except ImportError:
        text = f"{suffix} files need pyarrow, which is not installed: pip install pyarrow"
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, text) from None


class ParquetFile:
    def __init__(self, path: Path, headers: bool) -> None:
        from pyarrow.parquet import ParquetWriter

        from ixion.clients.consumer.arrow import arrow_schema

        self.rows = 0
        self._headers = headers
        self._waiting: list[pyarrow.RecordBatch] = []
        self._size = 0
        self._writer = ParquetWriter(path, arrow_schema(headers=headers), compression="zstd")

    def write(self, place: TopicPartition, columns: Columns, count: int) -> None:
        from ixion.clients.consumer.arrow import to_arrow

        batch = to_arrow(place, columns, headers=self._headers).slice(0, count)
        self._waiting.append(batch)
        self._size += batch.nbytes
        self.rows += count
        if self._size >= GROUP_BYTES:
            self._write_group()

    def close(self) -> None:
        self._write_group()
        self._writer.close()

    def _write_group(self) -> None:
        import pyarrow as pa

        if self._waiting:
            self._writer.write_table(pa.Table.from_batches(self._waiting))
            self._waiting, self._size = [], 0


class ArrowFile:
    """Arrow's IPC file format, also known as Feather."""

    def __init__(self, path: Path, headers: bool) -> None:
        import pyarrow as pa

        from ixion.clients.consumer.arrow import arrow_schema

        self.rows = 0
        self._headers = headers
        self._writer = pa.ipc.new_file(str(path), arrow_schema(headers=headers))

    def write(self, place: TopicPartition, columns: Columns, count: int) -> None:
        from ixion.clients.consumer.arrow import to_arrow

        self._writer.write_batch(to_arrow(place, columns, headers=self._headers).slice(0, count))
        self.rows += count

    def close(self) -> None:
        self._writer.close()


class CsvFile:
    def __init__(self, path: Path, headers: bool) -> None:
        self.rows = 0
        self._headers = headers
        self._file = path.open("w", encoding="utf-8", newline="")
        self._file.write("key,value,topic,partition,offset,timestamp,timestampType")
        self._file.write(",headers\n" if headers else "\n")

    def write(self, place: TopicPartition, columns: Columns, count: int) -> None:
        topic = quoted(place.topic)
        offsets, timestamps, kinds = columns.offsets, columns.timestamps, columns.timestamp_types
        lines = []
        for row in range(count):
            line = (
                f"{field(columns.keys[row])},{field(columns.values[row])},{topic},{place.partition},{offsets[row]},"
                f"{timestamps[row]},{kinds[row]}"
            )
            lines.append(f"{line},{header_field(columns, row)}\n" if self._headers else f"{line}\n")
        self._file.write("".join(lines))
        self.rows += count

    def close(self) -> None:
        self._file.close()


def field(data: bytes | None) -> str:
    if data is None:
        return ""
    try:
        return quoted(data.decode())
    except UnicodeDecodeError:
        return f"base64:{b64encode(data).decode()}"


def header_field(columns: Columns, row: int) -> str:
    found = columns.headers(row)
    return quoted(json.dumps([[name, show_bytes(value)] for name, value in found], ensure_ascii=False)) if found else ""


def quoted(text: str) -> str:
    """In quotes if RFC 4180 wants it, and if empty, so that it differs from null."""
    if text and not any(mark in text for mark in ',"\r\n'):
        return text
    doubled = text.replace('"', '""')
    return f'"{doubled}"'
