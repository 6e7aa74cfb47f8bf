"""What a batch has counted, and the bad rows it has collected, in Java's form whichever way Spark gives them."""

from __future__ import annotations

from typing import Any

from ixion.pipelines.spark.observed import observed


class Row:
    def getAs(self, name: str) -> str:  # noqa: N802 - as Java has it
        return f"rows of {name} in Java"


class Observation:
    """GET is what pyspark returns: rows as a Java object in 4.0, as a list in newer versions."""

    def __init__(self, get: dict[str, Any]) -> None:
        self.get = get
        self._jo = self

    def getRow(self) -> Row:  # noqa: N802 - as Java has it
        return Row()


def test_rows_stay_in_java() -> None:
    in_java = object()
    old: Any = Observation({"rows": 3, "collected": in_java})
    assert observed(old) == {"rows": 3, "collected": in_java}
    new: Any = Observation({"rows": 3, "collected": ["a", "b"]})
    assert observed(new) == {"rows": 3, "collected": "rows of collected in Java"}
