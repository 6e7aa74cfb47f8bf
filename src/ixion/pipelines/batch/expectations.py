"""SQL predicates that rows are expected to meet. A predicate that is null for a row is not met.

warn         the row passes, and is counted
drop         the row is left out, and is counted
quarantine   the row is left out, and its record goes to the quarantine table
fail         the batch ends with an error, nothing of it is written
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from ixion.pipelines.formats.added_columns import BROKEN, NEW, REASON, RECORD, RECORD_TYPES
from ixion.pipelines.formats.drift import FATAL
from ixion.pipelines.spec.pipeline import Expectation


def expect(frame: DataFrame, expectations: Sequence[Expectation]) -> DataFrame:
    """FRAME has the columns `_reason` and `_record`; rows that already have a reason are not checked."""
    return expecting(expectations)(frame)


def expecting(expectations: Sequence[Expectation]) -> Callable[[DataFrame], DataFrame]:
    """`expect` as a function whose expressions are built once.

    `_broken` is the number of the first expectation that a row does not meet. It is one list of conditions: each is
    evaluated at most once, and the plan grows linearly with their number.
    """
    asked = [one for one in expectations if one.otherwise != "warn"]
    had_reason = F.col(REASON).isNotNull()
    if not asked:
        bad = F.when(had_reason, F.col(RECORD))
        return lambda frame: frame.withColumn(RECORD, bad)
    broken = F.when(had_reason, F.lit(None).cast("int"))
    reason = F.when(had_reason, F.col(REASON))
    for number, one in enumerate(asked):
        broken = broken.when(~met(one), F.lit(number))
        words = _fatal(one) if one.otherwise == "fail" else F.lit(_reason(one))
        reason = reason.when(F.col(BROKEN) == number, words)
    dropped = [number for number, one in enumerate(asked) if one.otherwise == "drop"]
    wanted = had_reason | (F.col(BROKEN).isNotNull() & ~F.col(BROKEN).isin(dropped))
    judged = {REASON: reason, RECORD: F.when(wanted, F.col(RECORD))}
    return lambda frame: frame.withColumn(BROKEN, broken).withColumns(judged).drop(BROKEN)


def expect_result(frame: DataFrame, expectations: Sequence[Expectation]) -> DataFrame:
    """As `expect`, for rows after the steps. They are no records any more, so in quarantine they are JSON."""
    row = F.to_json(F.struct(*frame.columns)).cast("binary")
    empty = F.struct(*(_nothing(name, kind, row) for name, kind in RECORD_TYPES.items()))
    return expect(frame.withColumns({REASON: F.lit(None).cast("string"), RECORD: empty}), expectations)


def counts(expectations: Sequence[Expectation], frame: DataFrame) -> dict[str, Column]:
    """The counts of the rows of FRAME as they pass: all, those with a reason, those for the quarantine, warnings,
    records with new fields and some of these names; and the rows that break each expectation."""
    bad = F.count(F.when(F.col(REASON).isNotNull(), F.col(RECORD)))
    columns = {"rows": F.count(F.lit(1)), "unwanted": F.count(REASON), "bad": bad}
    if NEW in frame.columns:
        columns |= {"drifted": F.count(NEW), "new_fields": F.min(NEW)}
    for number, one in enumerate(expectations):
        if one.otherwise == "warn":
            columns[f"warned_{number}"] = F.count(F.when(F.col(REASON).isNull() & ~met(one), 1))
        elif one.otherwise != "fail":
            columns[f"broken_{number}"] = F.count(F.when(F.col(REASON) == _reason(one), 1))
    return columns


def warned(expectations: Sequence[Expectation], seen: Mapping[str, Any]) -> dict[str, int]:
    """From the result of `counts`: expectation -> rows."""
    return {one.name: seen[f"warned_{number}"] for number, one in enumerate(expectations) if one.otherwise == "warn"}


def broken(expectations: Sequence[Expectation], seen: Mapping[str, Any]) -> dict[str, int]:
    """From the result of `counts`: expectation -> rows that break it; of several, the first one counts."""
    counted = {}
    for number, one in enumerate(expectations):
        if one.otherwise != "fail":
            counted[one.name] = int(seen[f"{'warned' if one.otherwise == 'warn' else 'broken'}_{number}"])
    return counted


def drifted(seen: Mapping[str, Any]) -> dict[str, Any]:
    """From the result of `counts`: how many records had new fields, and some of their names."""
    names = (seen.get("new_fields") or "").split(", ")
    return {"drifted": seen.get("drifted", 0), "new_fields": {name: "" for name in names if name}}


def met(expectation: Expectation) -> Column:
    return F.coalesce(F.expr(expectation.check).cast("boolean"), F.lit(False))


def _reason(expectation: Expectation) -> str:
    return f"expectation: {expectation.name}"


def _nothing(name: str, kind: str, row: Column) -> Column:
    return (row if name == "value" else F.lit(None).cast(kind)).alias(name)


def _fatal(expectation: Expectation) -> Column:
    place = F.concat(F.col(f"{RECORD}.topic"), F.lit("-"), F.col(f"{RECORD}.partition"))
    place = F.concat(F.lit(" at "), place, F.lit(" offset "), F.col(f"{RECORD}.offset"))
    words = f"{FATAL}expectation {expectation.name!r} is not met"
    return F.raise_error(F.concat(F.lit(words), F.coalesce(place, F.lit("")))).cast("string")
