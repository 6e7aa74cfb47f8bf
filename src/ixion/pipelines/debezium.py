"""Debezium's envelope: what happened to a row of a database, with the row before and after it.

    {"before": null, "after": {"id": 7, "name": "Ada"}, "op": "c", "ts_ms": 1767225600000, "source": {…}}

`op` is c (created), u (updated), d (deleted), r (read by a snapshot) or t (the table was truncated). With the schemas
of Kafka Connect switched on, all this is in a field `payload`. A deleted row is taken from `before`, all others from
`after`.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

OP: Final = "change_op"
MS: Final = "change_ms"  # when the connector saw the change


def unwrap(frame: DataFrame) -> DataFrame:
    """The rows, with `change_op` and `change_ms`, and the columns of the record that FRAME has beside them."""
    envelope = "payload." if "payload" in frame.columns else ""
    own = ("payload",) if envelope else ("before", "after", "op", "ts_ms")
    rest = [F.col(name) for name in frame.columns if name not in own]
    op = F.col(f"{envelope}op")
    row = F.when(op == "d", F.col(f"{envelope}before")).otherwise(F.col(f"{envelope}after"))
    named = frame.select(row.alias("_row"), op.alias(OP), F.col(f"{envelope}ts_ms").alias(MS), *rest)
    return named.select("_row.*", OP, MS, *rest)
