"""Classes of the JVM, looked up once.

Python's side of Spark looks a name up in the JVM each time that it is used. `jvm.org.apache.hadoop.fs.Path` takes five
lookups, and for four of them the JVM searches every jar for a class of that name, in vain. Making the plan of a small
pipeline took ten thousand such lookups, about a tenth of its time. A full name is one lookup, and the view of the JVM
keeps a result that is set on it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# The classes that Spark's own functions look up again for every column.
_SPARKS: Final = (
    "org.apache.spark.sql.functions",
    "org.apache.spark.sql.classic.SparkSession",
    "org.apache.spark.sql.catalyst.trees.PySparkCurrentOrigin",
    "org.apache.spark.util.Utils",
    "functions",
    "PythonUtils",
    "PythonSQLUtils",
)


def java_class(spark: SparkSession, name: str) -> Any:
    """The class with this full name."""
    return _kept(spark.sparkContext._jvm, name)


def keep_classes(spark: SparkSession) -> None:
    """Cache classes, so that Spark's own functions look up fewer names."""
    jvm: Any = spark.sparkContext._jvm
    for name in _SPARKS:
        _kept(jvm, name)
    for package, name in (("py4j", "reflection"), ("py4j.reflection", "TypeUtil")):  # looked up with every error
        view = jvm
        for part in package.split("."):
            view = _kept(view, part)
        _kept(view, name)


def _kept(view: Any, name: str) -> Any:
    found = vars(view).get(name)
    if found is None:
        found = getattr(view, name)
        setattr(view, name, found)
    return found
