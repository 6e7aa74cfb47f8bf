"""The values of an observation, rows among them as Java has them.

Spark 4.0 leaves rows in Java. Newer versions turn them into Python's rows, with times in the zone of this machine: in
the hour that comes twice when summer time ends, they would be another moment when they go back to Java.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql import Observation


def observed(observation: Observation) -> dict[str, Any]:
    java: Any = observation._jo
    return {
        name: java.getRow().getAs(name) if isinstance(value, list) else value for name, value in observation.get.items()
    }
