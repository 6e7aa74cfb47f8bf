"""SQL predicates that rows are expected to meet. A predicate that is null for a row is not met.

warn         the row passes, and is counted
drop         the row is left out, and is counted
quarantine   the row is left out, and its record goes to the quarantine table
fail         the batch ends with an error, nothing of it is written
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ixion.pipelines.columns import REASON, RECORD, RECORD_TYPES
from ixion.pipelines.drift import FATAL
from ixion.pipelines.spec.pipeline import Expectation


def expect(frame: DataFrame, expectations: Sequence[Expectation]) -> DataFrame:
    """FRAME has the columns `_reason` and `_record`; rows that have a reason already are not asked."""
    reason, record = F.col(REASON), F.col(RECORD)
    for expectation in expectations:
        if expectation.otherwise == "warn":
            continue
        broken = reason.isNull() & ~met(expectation)
        words = F.lit(f"expectation: {expectation.name}")
        if expectation.otherwise == "fail":
            words = _fatal(expectation)
        if expectation.otherwise == "drop":
            record = F.when(~broken, record)
        reason = F.when(broken, words).otherwise(reason)
    # Both at once: each was built on the columns as they were before.
    return frame.withColumns({REASON: reason, RECORD: F.when(reason.isNotNull(), record)})


def expect_result(frame: DataFrame, expectations: Sequence[Expectation]) -> DataFrame:
    """The same for rows that the steps gave. They are no records any more: in quarantine they are JSON."""
    row = F.to_json(F.struct(*frame.columns)).cast("binary")
    empty = F.struct(*(_nothing(name, kind, row) for name, kind in RECORD_TYPES.items()))
    return expect(frame.withColumns({REASON: F.lit(None).cast("string"), RECORD: empty}), expectations)


def counts(expectations: Sequence[Expectation]) -> dict[str, Column]:
    """What is counted of rows as they pass: all of them, those with a reason, those for the quarantine, warnings."""
    columns = {"rows": F.count(F.lit(1)), "unwanted": F.count(REASON), "bad": F.count(RECORD)}
    for number, one in enumerate(expectations):
        if one.otherwise == "warn":
            columns[f"warned_{number}"] = F.count(F.when(F.col(REASON).isNull() & ~met(one), 1))
    return columns


def warned(expectations: Sequence[Expectation], seen: Mapping[str, int]) -> dict[str, int]:
    """From what `counts` counted: expectation -> rows."""
    return {one.name: seen[f"warned_{number}"] for number, one in enumerate(expectations) if one.otherwise == "warn"}


def met(expectation: Expectation) -> Column:
    return F.coalesce(F.expr(expectation.check).cast("boolean"), F.lit(False))


def _nothing(name: str, kind: str, row: Column) -> Column:
    return (row if name == "value" else F.lit(None).cast(kind)).alias(name)


def _fatal(expectation: Expectation) -> Column:
    place = F.concat(F.col(f"{RECORD}.topic"), F.lit("-"), F.col(f"{RECORD}.partition"))
    place = F.concat(F.lit(" at "), place, F.lit(" offset "), F.col(f"{RECORD}.offset"))
    words = f"{FATAL}expectation {expectation.name!r} is not met"
    return F.raise_error(F.concat(F.lit(words), F.coalesce(place, F.lit("")))).cast("string")
