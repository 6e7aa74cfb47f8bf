"""Spark looks for data sources in modules named `pyspark_…`; so `format("ixion")` needs no registration."""

from ixion.spark.source import IxionDataSource as DefaultSource

__all__ = ["DefaultSource"]
