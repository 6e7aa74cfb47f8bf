"""Java's own search in texts as columns.

Spark's functions on texts compare byte by byte: `replace` takes 4 us to look for two characters in 1 KB, Java's
`String.indexOf` 0.1 us. Spark can call any method of Java in a column (`StaticInvoke`), but has no function for it in
Python. A text is decoded once for all the searches of one projection; invalid bytes become U+FFFD.
"""

from __future__ import annotations

from typing import Any, Final

from pyspark.sql import Column, SparkSession
from pyspark.sql.classic.column import Column as ClassicColumn

from ixion.pipelines.spark.java_classes import java_class

_CATALYST: Final = "org.apache.spark.sql.catalyst.expressions"
_COLUMNS: Final = "org.apache.spark.sql.classic.ExpressionUtils"
_STRINGS: Final = "org.apache.commons.lang3.StringUtils"


class JavaText:
    def __init__(self, spark: SparkSession, text: Column) -> None:
        self._spark: Final = spark
        self._strings: Final = self._of("java.lang.Class").forName(_STRINGS)
        self._string_type: Final = self._type("ObjectType")(self._of("java.lang.Class").forName("java.lang.String"))
        unresolved: Any = text
        expression = self._of(_COLUMNS).expression(unresolved._jc)
        self._nothing: Final = self._sequence()
        self._none: Final = self._of("scala.Option").apply(None)
        self._invoke: Final = self._of(f"{_CATALYST}.objects.StaticInvoke")
        to_string = (expression, "toString", self._string_type, self._nothing, self._nothing, True, False, True)
        self._text: Final = self._of(f"{_CATALYST}.objects.Invoke")(*to_string)

    def count(self, part: str) -> Column:
        """How often the text contains PART; parts that overlap count once."""
        return self._call("countMatches", "IntegerType", self._literal(part, self._string_type))

    def contains(self, part: str) -> Column:
        return self._call("contains", "BooleanType", self._literal(part, self._string_type))

    def contains_character(self, character: str) -> Column:
        """Faster than `contains` of a text of one character."""
        return self._call("contains", "BooleanType", self._literal(ord(character), self._type("IntegerType$")))

    def _call(self, method: str, result: str, argument: Any) -> Column:
        arguments, kind = self._sequence(self._text, argument), self._type(f"{result}$")
        rest = (self._nothing, True, False, True, self._none)  # types, nulls give null, never null, deterministic
        call = self._invoke(self._strings, kind, method, arguments, *rest)
        return ClassicColumn(self._of(_COLUMNS).column(call))

    def _literal(self, value: object, kind: Any) -> Any:
        return self._of(f"{_CATALYST}.Literal")(value, kind)

    def _type(self, name: str) -> Any:
        found = self._of(f"org.apache.spark.sql.types.{name}")
        return getattr(found, "MODULE$") if name.endswith("$") else found

    def _sequence(self, *items: Any) -> Any:
        values = self._of("java.util.ArrayList")()
        for item in items:
            values.add(item)
        return self._of("scala.jdk.javaapi.CollectionConverters").asScala(values).toSeq()

    def _of(self, name: str) -> Any:
        return java_class(self._spark, name)
