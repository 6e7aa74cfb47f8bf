"""Configures Spark for the catalogs of a pipeline file.

They are set in the session when they are needed, not on the command line of the JVM, so that no password is visible
there. Settings of a catalog in `[spark] conf` come first.
"""

from __future__ import annotations

from typing import Final

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

from ixion.pipelines.errors import PipelineError
from ixion.pipelines.spark.java_classes import java_class
from ixion.pipelines.spec.catalogs import CatalogSpec
from ixion.pipelines.spec.pipeline import PipelineSpec

DRIVERS: Final = {
    "postgresql": "org.postgresql.Driver",
    "mysql": "com.mysql.cj.jdbc.Driver",
    "sqlite": "org.sqlite.JDBC",
}


def register_catalogs(spec: PipelineSpec, spark: SparkSession) -> None:
    for catalog in spec.catalogs:
        _load_driver(catalog, spark)
        for name, value in catalog.conf().items():
            if spark.conf.get(name, None) is None:
                spark.conf.set(name, value)


def _load_driver(catalog: CatalogSpec, spark: SparkSession) -> None:
    """Load a JDBC driver: Java finds drivers only in jars that it was started with, and Spark adds its jars later."""
    driver = DRIVERS.get(catalog.driver or "")
    if driver is None:
        return
    loader = java_class(spark, "org.apache.spark.util.Utils").getContextOrSparkClassLoader()
    try:
        java_class(spark, "java.lang.Class").forName(driver, True, loader)
    except Py4JJavaError:
        hint = f"--jars names its jar, which brings {driver}"
        raise PipelineError(
            f"catalog {catalog.name}: there is no JDBC driver for {catalog.driver}", hint=hint
        ) from None
