"""A class of the JVM is asked for once, however often it is used."""

from __future__ import annotations

from typing import Any

from ixion.pipelines.spark.java_classes import java_class, keep_classes


class View:
    """Counts what is asked, as the view of a JVM answers it: a name in full is a class, else a package."""

    def __init__(self, asked: list[str], name: str = "") -> None:
        self._asked = asked
        self._name = name

    def __getattr__(self, name: str) -> View:
        self._asked.append(name)
        return View(self._asked, name)


class Context:
    def __init__(self, jvm: View) -> None:
        self._jvm = jvm


class Session:
    def __init__(self, asked: list[str]) -> None:
        self.sparkContext = Context(View(asked))


def test_a_class_is_asked_for_once() -> None:
    asked: list[str] = []
    spark: Any = Session(asked)
    first = java_class(spark, "java.util.HashMap")
    assert java_class(spark, "java.util.HashMap") is first
    assert asked == ["java.util.HashMap"]


def test_sparks_own_functions_find_what_was_kept() -> None:
    asked: list[str] = []
    spark: Any = Session(asked)
    keep_classes(spark)
    count = len(asked)
    jvm: Any = spark.sparkContext._jvm
    getattr(jvm, "org.apache.spark.sql.functions")
    assert jvm.PythonUtils is jvm.PythonUtils
    assert jvm.py4j.reflection.TypeUtil is jvm.py4j.reflection.TypeUtil
    assert len(asked) == count == len(set(asked))
