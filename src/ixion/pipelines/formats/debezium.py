"""Debezium's envelope: what happened to a row of a database, with the row before and after it.

    {"before": null, "after": {"id": 7, "name": "Ada"}, "op": "c", "ts_ms": 1767225600000, "source": {…}}

`op` is c (created), u (updated), d (deleted), r (read by a snapshot) or t (the table was truncated). With the schemas
of Kafka Connect switched on, all this is in a field `payload`. A deleted row is taken from `before`, all others from
`after`. A record that has no row there, such as the event of a truncated table, goes to the quarantine.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

OP: Final = "change_op"
MS: Final = "change_ms"  # when the connector saw the change


def without_row(data: Column, text: Column, *, wrapped: bool) -> Column:
    """Why the record TEXT, read as DATA, has no row; null if it has one. WRAPPED: the envelope must be in `payload`."""
    envelope = data["payload"] if wrapped else data
    op, place = envelope["op"], "$.op" if wrapped else "$.payload.op"
    elsewhere = "the envelope is not in a field payload: wrapped is true" if wrapped else "the envelope is in payload"
    hint = F.lit(f"{elsewhere}; see format.wrapped")
    other = F.when(F.get_json_object(text, place).isNotNull(), hint).otherwise(F.lit("not an envelope of Debezium"))
    row = F.when(op == "d", envelope["before"]).otherwise(envelope["after"])
    return F.when(op.isNull(), other).when(row.isNull(), F.concat(F.lit("the envelope has no row; its op is "), op))


def unwrap(frame: DataFrame) -> DataFrame:
    """The rows, with `change_op` and `change_ms`, and the columns of the record that FRAME has beside them."""
    envelope = "payload." if "payload" in frame.columns else ""
    own = ("payload",) if envelope else ("before", "after", "op", "ts_ms")
    rest = [F.col(name) for name in frame.columns if name not in own]
    op = F.col(f"{envelope}op")
    row = F.when(op == "d", F.col(f"{envelope}before")).otherwise(F.col(f"{envelope}after"))
    named = frame.select(row.alias("_row"), op.alias(OP), F.col(f"{envelope}ts_ms").alias(MS), *rest)
    return named.select("_row.*", OP, MS, *rest)
