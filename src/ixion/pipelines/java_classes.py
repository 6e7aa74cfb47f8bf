"""Classes of the JVM, asked for once.

Python's side of Spark asks the JVM anew what a name is, each time that it is used. `jvm.org.apache.hadoop.fs.Path` is
five questions, and for four of them the JVM looks into every jar for a class of that name, in vain. Making the plan of
a small pipeline took ten thousand such questions, about a tenth of its time. A name in full is one question, and the
view of the JVM keeps an answer that is set on it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Those that Spark's own functions ask for, one time and again for every column.
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
    """From now on Spark's own functions ask less."""
    jvm: Any = spark.sparkContext._jvm
    for name in _SPARKS:
        _kept(jvm, name)
    for package, name in (("py4j", "reflection"), ("py4j.reflection", "TypeUtil")):  # asked for with every error
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
