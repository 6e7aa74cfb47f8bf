"""The steps of a pipeline, each a function from a frame to a frame."""

from __future__ import annotations

import importlib
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from ixion.config.table import meant
from ixion.pipelines.errors import PipelineError
from ixion.pipelines.formats.debezium import unwrap
from ixion.pipelines.spark.shipped_modules import ship_modules
from ixion.pipelines.spec.durations import spark_interval
from ixion.pipelines.spec.steps import (
    DeduplicateStep,
    JoinStep,
    PythonStep,
    SqlStep,
    Step,
    TableSpec,
    UnwrapStep,
    WatermarkStep,
    WindowStep,
)


def apply_steps(frame: DataFrame, steps: Sequence[Step], tables: Mapping[str, TableSpec], folder: Path) -> DataFrame:
    """Python steps are imported from FOLDER first."""
    spark = frame.sparkSession
    for name, table in tables.items():
        read_table(spark, table).createOrReplaceTempView(name)
    watermarked = False
    for step in steps:
        watermarked = watermarked or isinstance(step, WatermarkStep)
        frame = _apply(frame, step, folder, watermarked)
    return frame


def read_table(spark: SparkSession, table: TableSpec) -> DataFrame:
    options = {"header": "true", "inferSchema": "true", **table.options} if table.format == "csv" else table.options
    return spark.read.format(table.format).options(**options).load(table.path)


def _apply(frame: DataFrame, step: Step, folder: Path, watermarked: bool) -> DataFrame:
    if isinstance(step, UnwrapStep):
        return unwrap(frame)
    if isinstance(step, SqlStep):
        frame.createOrReplaceTempView("stream")
        return frame.sparkSession.sql(step.query)
    if isinstance(step, PythonStep):
        return _call(python_function(step.function, folder, frame.sparkSession), step.function, frame)
    if isinstance(step, WatermarkStep):
        need_columns(frame, "watermark", [step.column])
        return frame.withWatermark(step.column, spark_interval(step.delay_ms))
    if isinstance(step, DeduplicateStep):
        need_columns(frame, "deduplicate", step.columns)
        columns = list(step.columns)
        # With a watermark, Spark drops a key from its state once it is too late to come again; without one, never.
        if watermarked and frame.isStreaming:
            return frame.dropDuplicatesWithinWatermark(columns)
        return frame.dropDuplicates(columns)
    if isinstance(step, JoinStep):
        need_columns(frame, "join", step.on)
        table = frame.sparkSession.table(step.table)
        need_columns(table, f"join with {step.table}", step.on)
        return frame.join(F.broadcast(table), list(step.on), step.how)
    return _window(frame, step)


def _window(frame: DataFrame, step: WindowStep) -> DataFrame:
    need_columns(frame, "window", [step.column, *step.by])
    slide = spark_interval(step.slide_ms) if step.slide_ms else None
    window = F.window(step.column, spark_interval(step.size_ms), slide)
    aggregates = [F.expr(sql).alias(name) for name, sql in step.aggregates.items()]
    grouped = frame.groupBy(window.alias("window"), *step.by).agg(*aggregates)
    return grouped.select("window.start", "window.end", *step.by, *step.aggregates)


def need_columns(frame: DataFrame, step: str, columns: Sequence[str]) -> None:
    for column in columns:
        if column not in frame.columns:
            hint = f"there are: {', '.join(frame.columns)}"
            raise PipelineError(f"{step}: there is no column {column}{meant(column, frame.columns, 0.6)}", hint=hint)


def refuse_twins(frame: DataFrame) -> None:
    """Raises if two column names differ only in case: tables do not distinguish them."""
    seen: set[str] = set()
    for name in frame.columns:
        if name.lower() in seen:
            raise PipelineError(f"the rows have two columns {name}", hint="give one of them another name: … AS other")
        seen.add(name.lower())


def python_function(path: str, folder: Path, spark: SparkSession) -> Callable[[DataFrame], DataFrame]:
    """The function "module:name". Modules beside the pipeline file are also sent to Spark's workers."""
    module_name, _, name = path.partition(":")
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        hint = f"modules are searched in {folder} and among the installed packages"
        raise PipelineError(f"the Python step {path} cannot be imported: {error}", hint=hint) from error
    except Exception as error:  # importing a module can raise anything
        raise PipelineError(f"the Python step {path} cannot be imported: {_said(error)}", hint=_place(error)) from error
    function: Callable[[DataFrame], DataFrame] | None = getattr(module, name, None)
    if not callable(function):
        raise PipelineError(f"{module_name} has no function {name}{meant(name, dir(module), 0.6)}")
    ship_modules(folder, spark)
    return function


def _call(function: Callable[[DataFrame], DataFrame], path: str, frame: DataFrame) -> DataFrame:
    try:
        result = function(frame)
    except PySparkException:  # an unknown column and the like; `explain` words these
        raise
    except Exception as error:
        raise PipelineError(f"the Python step {path} failed: {_said(error)}", hint=_place(error)) from error
    if not hasattr(result, "sparkSession"):
        message = f"the Python step {path} returned {type(result).__name__}; it must return a DataFrame"
        raise PipelineError(message, hint="does it end with `return frame`?")
    return result


def _said(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def _place(error: Exception) -> str:
    """The line of the user's code that failed."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    return f"{last.filename}, line {last.lineno}: {last.line}" if last.line and last.filename != __file__ else ""
