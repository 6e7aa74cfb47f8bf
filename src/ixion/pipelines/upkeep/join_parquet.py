"""Small files of a Parquet table are joined.

Delta and Iceberg do it by commits of their own; their readers see the table as it was or as it will be. A folder of
Parquet files has no such thing: what a reader sees is what it finds when it lists the folder, and a file system can
exchange one name at one blow, not several. Joining a and b into c takes at least two steps, so there is a moment at
which a reader finds too little or too much:

    remove a, remove b, move c in     rows are missing in between, none is there twice
    move c in, remove a, remove b     rows are there twice in between, none is missing
    move c over a, remove b           the rows of b are there twice in between

A folder that `sinks/parquet.py` fills shows each row at most once at every moment, and that stays true here: the first
order is used. A sum that is too low for a moment grows again, as when a batch is moved in; a sum that is too high looks
like an error for ever. The moment is kept short: c is written beside the table beforehand, and files are joined in
groups that just reach the wanted size, never a whole partition at once. So a group is exchanged by a few removals and
one rename, and a joined file is not touched again. A reader that listed the folder before no longer finds its files and
fails; it gets no wrong rows.

The exchange is decided by a list, as a batch is. If a run is killed in between, the next run finishes the exchange
before it does anything else, so no row is lost.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator, Sequence

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from ixion.pipelines.sinks.parquet import ParquetWriter, is_file_of, joined_name
from ixion.pipelines.spark.hadoop_files import Files, one_path
from ixion.pipelines.spec.sinks import TableSink


def finish_compaction(sink: TableSink, pipeline: str, spark: SparkSession) -> None:
    """Finish the exchange of a run that was killed."""
    files = Files(spark)
    writer = ParquetWriter(sink, files)
    folder = _lists(writer, pipeline)
    for name in files.names(folder):
        if name.endswith(".json"):
            writer.finish(f"{folder}/{name}", _stage(writer, pipeline))
            files.remove(f"{folder}/{name}")


def compact_parquet(sink: TableSink, pipeline: str, spark: SparkSession) -> tuple[int, int]:
    """Join small files; returns how many were joined, and into how many. Only files of this pipeline: another one may
    be joining its own."""
    files = Files(spark)
    writer = ParquetWriter(sink, files)
    enough = sink.upkeep.compact_below_bytes or 0
    small: dict[str, list[tuple[str, int]]] = {}
    for name, size in files.walk(writer.table):
        folder, _, file = name.rpartition("/")
        if size < enough and is_file_of(pipeline, file):
            small.setdefault(folder, []).append((name, size))
    joined = 0
    made = 0
    for found in small.values():
        for names in groups(found, enough):
            made += _join(writer, files, pipeline, names, spark)
            joined += len(names)
    return joined, made


def groups(found: Sequence[tuple[str, int]], enough: int) -> Iterator[list[str]]:
    """Groups of files (name, size in bytes) to join: each group has ENOUGH bytes, and at least two files."""
    names: list[str] = []
    together = 0
    for name, size in found:
        names.append(name)
        together += size
        if together >= enough:
            yield names
            names, together = [], 0
    if len(names) > 1:
        yield names


def _join(writer: ParquetWriter, files: Files, pipeline: str, names: list[str], spark: SparkSession) -> int:
    """Join files; returns how many there are instead. A joined file has every column of its files. Files whose schemas
    cannot be merged are joined with their like."""
    try:
        rows = read_files(writer, names, spark)
    except (PySparkException, Py4JJavaError) as error:  # a column has two types
        if "CANNOT_MERGE" not in str(error):
            raise
        found = _alike(writer, names, spark)
        return sum(_join(writer, files, pipeline, alike, spark) if len(alike) > 1 else 1 for alike in found)
    exchange(writer, files, pipeline, names, rows)
    return 1


def exchange(writer: ParquetWriter, files: Files, pipeline: str, names: Sequence[str], rows: DataFrame) -> None:
    """Replace the files NAMES of one folder by one file with ROWS."""
    stage, mark = _stage(writer, pipeline), uuid.uuid4().hex[:8]
    files.remove(stage)
    rows.coalesce(1).write.options(**writer.sink.options).parquet(f"{stage}/{mark}")
    (staged,) = [name for name, _ in files.walk(f"{stage}/{mark}") if name.endswith(".parquet")]
    folder, final = names[0].rpartition("/")[0], joined_name(pipeline, mark, staged)
    listing = {"replaces": list(names), "moves": [(f"{mark}/{staged}", f"{folder}/{final}" if folder else final)]}
    listed = f"{_lists(writer, pipeline)}/{mark}.json"
    files.write_new(listed, json.dumps(listing, indent=1))
    writer.finish(listed, stage)
    files.remove(listed)


def read_files(writer: ParquetWriter, names: list[str], spark: SparkSession) -> DataFrame:
    """Read files without the columns of their partition, which are in the folder's name."""
    reader = spark.read.options(recursiveFileLookup="true", mergeSchema="true")
    return reader.parquet(*(one_path(f"{writer.table}/{name}") for name in names))


def _alike(writer: ParquetWriter, names: list[str], spark: SparkSession) -> list[list[str]]:
    """NAMES grouped by the columns and types of the files."""
    found: dict[str, list[str]] = {}
    for name in names:
        found.setdefault(read_files(writer, [name], spark).schema.simpleString(), []).append(name)
    return list(found.values())


def _lists(writer: ParquetWriter, pipeline: str) -> str:
    return f"{writer.table}/_ixion/{pipeline}/joins"


def _stage(writer: ParquetWriter, pipeline: str) -> str:
    return f"{writer.staging}/{pipeline}/joins"
