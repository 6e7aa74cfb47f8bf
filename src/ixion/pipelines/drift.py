"""Records that do not fit: what is wrong with them, in words, and what the policy makes of it.

The words are made only for the records that need them: Spark's conditional expressions look at one branch at a time.
"""

from __future__ import annotations

from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from ixion.pipelines.spec.format import DriftSpec

FATAL: Final = "ixion stops here: "  # how an error that was asked for is recognised in what Spark reports


def fatal(reason: Column) -> Column:
    """Ends the batch with REASON and the place of the record."""
    place = F.concat(F.col("topic"), F.lit("-"), F.col("partition"), F.lit(" offset "), F.col("offset"))
    return F.raise_error(F.concat(F.lit(FATAL), reason, F.lit(" at "), place)).cast("string")


def json_reason(schema: T.StructType, text: Column, data: Column, bad: str, drift: DriftSpec) -> Column:
    """TEXT is the record, DATA what Spark read from it, its field BAD the text again if something did not fit."""
    names = F.json_object_keys(text)
    unread = data.isNull() | data[bad].isNotNull()
    fields = [field.name for field in schema.fields]
    known = F.array(*(F.lit(name) for name in fields))
    retyped = F.concat(F.lit("not of the type in the schema: "), _retyped(fields, text, data))
    reason = F.when(unread & names.isNull(), F.lit("not a JSON object"))
    reason = _by_policy(reason, unread, retyped, drift.retyped)
    if drift.looks_at_names:
        new, missing = F.array_except(names, known), F.array_except(known, names)
        reason = _by_policy(reason, F.size(new) > 0, _listed("new fields: ", new), drift.new)
        reason = _by_policy(reason, F.size(missing) > 0, _listed("missing fields: ", missing), drift.missing)
    return reason


def csv_reason(text: Column, bad: Column, drift: DriftSpec) -> Column:
    """Spark takes an empty line for one of nulls."""
    return unreadable_reason(bad.isNotNull() | (text == ""), "not a line of the schema", drift)


def unreadable_reason(unread: Column, words: str, drift: DriftSpec) -> Column:
    return _by_policy(F.when(F.lit(False), F.lit("")), unread, F.lit(words), drift.retyped)


def _by_policy(reason: Column, condition: Column, words: Column, policy: str) -> Column:
    if policy == "quarantine":
        return reason.when(condition, words)
    return reason.when(condition, fatal(words)) if policy == "fail" else reason


def _retyped(fields: list[str], text: Column, data: Column) -> Column:
    """The fields that the text has and the data has not."""
    lost = [
        F.when(data[name].isNull() & F.get_json_object(text, f"$['{name}']").isNotNull(), F.lit(name))
        for name in fields
        if "'" not in name
    ]
    return F.concat_ws(", ", *lost)


def _listed(words: str, names: Column) -> Column:
    return F.concat(F.lit(words), F.concat_ws(", ", names))
