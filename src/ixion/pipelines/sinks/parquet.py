"""Exactly once into a folder of Parquet files, for any reader: Spark, pandas, DuckDB.

Spark's own file sink keeps a log of the valid files, and only Spark reads that log: after a crash every other reader
also sees the files of the failed attempt. So we commit a batch by moving files, in steps that can be resumed at any
point:

    1  write      lake/.orders.staging/shop/<query>/000000012/<attempt>/day=2026-01-31/….parquet
    2  decide     lake/orders/_ixion/shop/<query>/000000012.json     the list of moves, by one rename
    3  move       lake/orders/day=2026-01-31/shop-….parquet          one rename for each file
    4  clean up   the staging folder

Killed during 1: there is no list, and the batch is written again. Killed after 2: the list exists, so the batch is
decided. When Spark repeats it, its rows are not computed again (they might be split into other files); the missing
moves are made. A reader sees each row at most once at every moment, and exactly once when the batch is complete.

The staging folder lies beside the table because a rename is atomic only within one file system. It lies outside of the
table because some readers read every file in it. On an object store, which renames by copying, all this holds too,
because the list is one small object. It is slower there; Delta and Iceberg are better.
"""

from __future__ import annotations

import json
import re
import uuid
from dataclasses import replace
from typing import Any, Final

from pyspark.sql import DataFrame

from ixion.pipelines.sinks.base import Batch
from ixion.pipelines.sinks.reached import KEY, Reached, reached_of
from ixion.pipelines.spark.hadoop_files import Files
from ixion.pipelines.spec.sinks import TableSink

KEPT: Final = 100  # lists of moves kept for people who look into a problem; only the newest is needed


class ParquetWriter:
    is_table = True

    def __init__(self, sink: TableSink, files: Files) -> None:
        self.sink: Final = sink
        self._files: Final = files
        self.table: Final = sink.path.rstrip("/")
        parent, _, name = self.table.rpartition("/")
        self.staging: Final = f"{parent}/.{name}.staging"

    def has(self, batch: Batch) -> bool:
        last = self.last(batch)
        if batch.reached is None:
            there, done = batch, self._files.exists(self._list(batch))
        else:  # the newest list may be of a batch whose moves are not all made yet
            there, done = replace(batch, number=last), batch.is_done(self.reached(batch), last)
        if done:
            self.finish(self._list(there), self._stage(there))
        return done

    def write(self, frame: DataFrame, batch: Batch) -> None:
        if self.has(batch):
            return
        batch = replace(batch, number=batch.place(self.last(batch)))
        self._files.remove(self._stage(batch))
        # Each attempt has its own folder: tasks that still run after their driver was killed cannot write into it.
        attempt = uuid.uuid4().hex[:8]
        stage = f"{self._stage(batch)}/{attempt}"
        frame.write.partitionBy(*self.sink.partition_by).options(**self.sink.options).parquet(stage)
        moves = [(f"{attempt}/{staged}", final) for staged, final in self._moves(stage, batch)]
        self._files.write_new(self._list(batch), json.dumps({"moves": moves, **_told(batch)}, indent=1))
        self.finish(self._list(batch), self._stage(batch))
        self._forget(batch)

    def knows(self, pipeline: str) -> bool:
        return any(name != "joins" for name in self._files.names(f"{self.table}/_ixion/{pipeline}"))

    def last(self, batch: Batch) -> int:
        return max((int(name.removesuffix(".json")) for name in self._lists(batch)), default=-1)

    def reached(self, batch: Batch) -> Reached | None:
        names = self._lists(batch)
        if not names:
            return None
        return reached_of(json.loads(self._files.read(f"{self._folder(batch)}/{max(names)}")).get(KEY), batch.writer)

    def _lists(self, batch: Batch) -> list[str]:
        return [name for name in self._files.names(self._folder(batch)) if name.endswith(".json")]

    def _folder(self, batch: Batch) -> str:
        return f"{self.table}/_ixion/{batch.pipeline}/{batch.query}"

    def finish(self, listed: str, stage: str) -> None:
        """Make the moves of a list that are still missing."""
        listing = json.loads(self._files.read(listed))
        for old in listing.get("replaces", ()):
            self._files.remove(f"{self.table}/{old}")
        for staged, final in listing["moves"]:
            if self._files.exists(f"{stage}/{staged}"):
                self._files.rename(f"{stage}/{staged}", f"{self.table}/{final}")
        self._files.remove(stage)

    def _moves(self, stage: str, batch: Batch) -> list[tuple[str, str]]:
        """Staged name, final name. Final names are unique by pipeline and batch: two pipelines may share a table."""
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
        return f"{self._folder(batch)}/{batch.number:09d}.json"

    def _stage(self, batch: Batch) -> str:
        return f"{self.staging}/{batch.pipeline}/{batch.query}/{batch.number:09d}"


def _told(batch: Batch) -> dict[str, Any]:
    return {} if batch.reached is None else {KEY: batch.reached.to_text()}


def joined_name(pipeline: str, mark: str, staged: str) -> str:
    """The name of a file that several were joined into."""
    return f"{pipeline}-joined-{mark}{_ending(staged)}"


def is_file_of(pipeline: str, name: str) -> bool:
    """Whether PIPELINE wrote the file. It tells `shop` from `shop-eu`."""
    mine = rf"{re.escape(pipeline)}-(?:[0-9a-f]{{8}}-\d{{9,}}-\d{{5,}}|joined-[0-9a-f]{{8}})\.(?:\w+\.)*parquet"
    return re.fullmatch(mine, name) is not None


def _ending(name: str) -> str:
    """The ending with the codec, such as .snappy.parquet."""
    return name[name.index("c000") + 4 :]
