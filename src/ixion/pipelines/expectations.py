"""SQL predicates that rows are expected to meet. A predicate that is null for a row is not met.

warn         the row passes, and is counted
drop         the row is left out, and is counted
quarantine   the row is left out, and its record goes to the quarantine table
fail         the batch ends with an error, nothing of it is written
"""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ixion.pipelines.columns import REASON, RECORD
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


def met(expectation: Expectation) -> Column:
    return F.coalesce(F.expr(expectation.check).cast("boolean"), F.lit(False))


def _fatal(expectation: Expectation) -> Column:
    place = F.concat(F.col(f"{RECORD}.topic"), F.lit("-"), F.col(f"{RECORD}.partition"))
    place = F.concat(F.lit(" at "), place, F.lit(" offset "), F.col(f"{RECORD}.offset"))
    words = f"{FATAL}expectation {expectation.name!r} is not met"
    return F.raise_error(F.concat(F.lit(words), F.coalesce(place, F.lit("")))).cast("string")
