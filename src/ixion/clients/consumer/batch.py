"""Records of one partition as columns, as a consumer returns them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ixion.clients.metadata import TopicPartition
from ixion.language.records.columns import BinaryColumn, Columns

if TYPE_CHECKING:
    import pyarrow


class ColumnBatch:
    """`batch.offsets[row]`, `batch.values[row]`, or the buffers themselves; see `ixion.language.records.columns`."""

    __slots__ = ("columns", "partition", "topic")

    def __init__(self, place: TopicPartition, columns: Columns) -> None:
        self.topic = place.topic
        self.partition = place.partition
        self.columns = columns

    def __len__(self) -> int:
        return len(self.columns)

    @property
    def offsets(self) -> memoryview:
        return self.columns.offsets

    @property
    def timestamps(self) -> memoryview:
        return self.columns.timestamps

    @property
    def keys(self) -> BinaryColumn:
        return self.columns.keys

    @property
    def values(self) -> BinaryColumn:
        return self.columns.values

    def headers(self, row: int) -> list[tuple[str, bytes | None]]:
        return self.columns.headers(row)

    def to_arrow(self, *, headers: bool = True) -> pyarrow.RecordBatch:
        """The same buffers as an Arrow record batch; needs pyarrow (``pip install pyarrow``)."""
        from ixion.clients.consumer.arrow import to_arrow

        return to_arrow(TopicPartition(self.topic, self.partition), self.columns, headers=headers)
