"""Exactly once into a folder of Parquet files, for readers that know nothing of it: Spark, pandas, DuckDB, anything.

Spark's own file sink keeps a log of the files that count, and only Spark reads that log; after a crash every other
reader sees files of an attempt that was given up. So a batch is committed here by moving files, in an order that can be
taken up again at any point:

    1  write      lake/.orders.staging/shop/<query>/000000012/<attempt>/day=2026-01-31/….parquet
    2  decide     lake/orders/_ixion/shop/<query>/000000012.json     the list of moves, by one rename
    3  move       lake/orders/day=2026-01-31/shop-….parquet          one rename for each file
    4  clean up   the staging folder

Killed during 1: there is no list, the batch is written anew. Killed after 2: the list is there, so the batch is
decided; when Spark brings it again its rows are not computed again (they might fall into files otherwise), the moves
that are missing are made. A reader sees each row at most once at every moment, and exactly once when the batch is
through.

The staging folder lies beside the table because a rename is atomic only within one file system, and outside of it
because some readers take every file below it. An object store that renames by copying keeps the promise too, as the
list is decided by one small object; it is only slower: Delta or Iceberg are better there.
"""

from __future__ import annotations

import json
import re
import uuid
from typing import Final

from pyspark.sql import DataFrame

from ixion.pipelines.files import Files
from ixion.pipelines.sinks.base import Batch
from ixion.pipelines.spec.sinks import TableSink

KEPT: Final = 100  # lists of moves that stay for the curious; only the newest is ever needed


class ParquetWriter:
    is_table = True

    def __init__(self, sink: TableSink, files: Files) -> None:
        self.sink: Final = sink
        self._files: Final = files
        self.table: Final = sink.path.rstrip("/")
        parent, _, name = self.table.rpartition("/")
        self.staging: Final = f"{parent}/.{name}.staging"

    def has(self, batch: Batch) -> bool:
        listed = self._list(batch)
        if not self._files.exists(listed):
            return False
        self.finish(listed, self._stage(batch))
        return True

    def write(self, frame: DataFrame, batch: Batch) -> None:
        if self.has(batch):
            return
        self._files.remove(self._stage(batch))
        # A folder of its own for each attempt: what a driver that was killed has left running cannot write into this
        # one.
        attempt = uuid.uuid4().hex[:8]
        stage = f"{self._stage(batch)}/{attempt}"
        frame.write.partitionBy(*self.sink.partition_by).options(**self.sink.options).parquet(stage)
        moves = [(f"{attempt}/{staged}", final) for staged, final in self._moves(stage, batch)]
        self._files.write_new(self._list(batch), json.dumps({"moves": moves}, indent=1))
        self.finish(self._list(batch), self._stage(batch))
        self._forget(batch)

    def knows(self, pipeline: str) -> bool:
        return any(name != "joins" for name in self._files.names(f"{self.table}/_ixion/{pipeline}"))

    def finish(self, listed: str, stage: str) -> None:
        """Does what a list says and has not been done."""
        listing = json.loads(self._files.read(listed))
        for old in listing.get("replaces", ()):
            self._files.remove(f"{self.table}/{old}")
        for staged, final in listing["moves"]:
            if self._files.exists(f"{stage}/{staged}"):
                self._files.rename(f"{stage}/{staged}", f"{self.table}/{final}")
        self._files.remove(stage)

    def _moves(self, stage: str, batch: Batch) -> list[tuple[str, str]]:
        """Staged name, final name. The final names tell batches apart: two pipelines may write into one table."""
        moves = []
        for number, (staged, size) in enumerate(self._files.walk(stage)):
            folder, _, name = staged.rpartition("/")
            if name.endswith(".parquet") and size:
                final = f"{batch.pipeline}-{batch.query[:8]}-{batch.number:09d}-{number:05d}{_ending(name)}"
                moves.append((staged, f"{folder}/{final}" if folder else final))
        return moves

    def _forget(self, batch: Batch) -> None:
        old = Batch(pipeline=batch.pipeline, query=batch.query, number=batch.number - KEPT)
        self._files.remove(self._list(old))

    def _list(self, batch: Batch) -> str:
        return f"{self.table}/_ixion/{batch.pipeline}/{batch.query}/{batch.number:09d}.json"

    def _stage(self, batch: Batch) -> str:
        return f"{self.staging}/{batch.pipeline}/{batch.query}/{batch.number:09d}"


def joined_name(pipeline: str, mark: str, staged: str) -> str:
    """Of a file that was made from several."""
    return f"{pipeline}-joined-{mark}{_ending(staged)}"


def is_file_of(pipeline: str, name: str) -> bool:
    """Whether PIPELINE wrote the file; the files of `shop` are not those of `shop-eu`."""
    mine = rf"{re.escape(pipeline)}-(?:[0-9a-f]{{8}}-\d{{9,}}-\d{{5,}}|joined-[0-9a-f]{{8}})\.(?:\w+\.)*parquet"
    return re.fullmatch(mine, name) is not None


def _ending(name: str) -> str:
    """.snappy.parquet, or whatever the codec is."""
    return name[name.index("c000") + 4 :]
