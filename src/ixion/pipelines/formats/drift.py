"""Records that do not fit the schema: the reason, and what the policy does with them.

The words are made only for the records that need them: Spark's conditional expressions look at one branch at a time.
"""

from __future__ import annotations

import uuid
from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from ixion.pipelines.formats.added_columns import BAD_TEXT, BROKEN, EXTRA, HIDDEN
from ixion.pipelines.formats.nested_fields import COLUMN_NAME, unfit_inner
from ixion.pipelines.spec.format import DriftSpec, FormatSpec

FATAL: Final = "ixion stops here: "  # marks an intended error in Spark's report
GROWN: Final = "ixion has met new fields: "  # marks a batch with fields for new columns
NOT_UTF8: Final = "not valid UTF-8"
SHOWN: Final = 5  # new fields that are named in the figures
SHOWN_CHARS: Final = 500


def fatal(reason: Column) -> Column:
    """End the batch with REASON and the place of the record."""
    place = F.concat(F.col("topic"), F.lit("-"), F.col("partition"), F.lit(" offset "), F.col("offset"))
    return F.raise_error(F.concat(F.lit(FATAL), reason, F.lit(" at "), place)).cast("string")


def json_reason(
    schema: T.StructType,
    text: Column,
    data: Column,
    bad: str,
    usual: Column,
    names: Column,
    spec: FormatSpec,
    inner: Column | None = None,
) -> Column:
    """TEXT is the record, DATA the result of Spark's reading, its field BAD the text again if something did not fit.

    USUAL records are one object with keys of the schema only (see `json_fast_path`). NAMES are the keys of any other
    object, null if it is not one; INNER are the new keys of nested objects.
    """
    drift = spec.drift
    unread = data.isNull() | data[bad].isNotNull()
    fields = [field.name for field in schema.fields]
    known = F.array(*(F.lit(name) for name in fields))
    retyped = F.concat(F.lit("not of the type in the schema: "), _retyped(fields, text, data))
    reason = F.when(~F.is_valid_utf8(text), F.lit(NOT_UTF8))
    if spec.json.strict:
        reason = reason.when(unread & F.try_parse_json(text).isNull(), F.lit("not a JSON object"))
        reason = reason.when(~usual & names.isNull(), F.lit("not a JSON object"))
        reason = reason.when(~_is_one_object(text), F.lit("there is more after the JSON object"))
    else:
        reason = reason.when(unread & ~usual & names.isNull(), F.lit("not a JSON object"))
    if spec.json.repeated_keys == "quarantine":
        twice = F.size(names) != F.size(F.array_distinct(names))
        reason = reason.when(twice, _listed("repeated keys: ", _repeated(names)))
    reason = _by_policy(reason, unread, retyped, drift.retyped)
    new, missing = F.array_except(names, known), F.array_except(known, names)
    unfit = unfit_names(new, fields)
    if inner is not None:
        new, unfit = F.concat(new, inner), F.concat(unfit, unfit_inner(inner, schema))
    if drift.new == "add":
        reason = reason.when(F.size(unfit) > 0, _listed("fields that cannot be columns: ", unfit))
        reason = reason.when(F.size(new) > 0, F.raise_error(_listed(GROWN, F.slice(new, 1, SHOWN))).cast("string"))
    reason = _by_policy(reason, F.size(new) > 0, _listed("new fields: ", new), drift.new)
    if drift.missing != "null":
        reason = _by_policy(reason, F.size(missing) > 0, _listed("missing fields: ", missing), drift.missing)
    return reason


def unfit_names(names: Column, fields: list[str]) -> Column:
    """Those of NAMES that cannot be a column beside FIELDS: tables do not distinguish names by case."""
    taken = [*(name.lower() for name in fields), *HIDDEN, BROKEN, EXTRA, BAD_TEXT]
    used = F.array(*(F.lit(name) for name in taken))
    return F.filter(names, lambda name: F.array_contains(used, F.lower(name)) | ~F.rlike(name, F.lit(COLUMN_NAME)))


def new_names(schema: T.StructType, names: Column | None, inner: Column | None = None) -> Column:
    """The first few new names of NAMES and INNER, as one text; null if there are none."""
    new = F.lit(None) if names is None else F.array_except(names, F.array(*(F.lit(name) for name in schema.names)))
    if inner is not None:
        new = inner if names is None else F.concat(F.coalesce(new, F.array().cast("array<string>")), inner)
    return F.when(F.size(new) > 0, F.substring(F.concat_ws(", ", F.slice(new, 1, SHOWN)), 1, SHOWN_CHARS))


def valid_text(column: Column, kind: T.DataType) -> Column:
    """Whether every text in COLUMN is valid UTF-8; null counts as valid."""
    if isinstance(kind, T.StringType):
        return F.coalesce(F.is_valid_utf8(column), F.lit(True))
    valid = F.lit(True)
    if isinstance(kind, T.StructType):
        for field in kind.fields:
            valid = valid & valid_text(column[field.name], field.dataType)
    elif isinstance(kind, T.ArrayType) and has_text(kind):
        element = kind.elementType
        valid = F.coalesce(F.forall(column, lambda item: valid_text(item, element)), F.lit(True))
    elif isinstance(kind, T.MapType) and has_text(kind):
        for items, item_kind in ((F.map_keys(column), kind.keyType), (F.map_values(column), kind.valueType)):
            valid = valid & valid_text(items, T.ArrayType(item_kind))
    return valid


def has_text(kind: T.DataType) -> bool:
    return "string" in kind.simpleString()


def csv_reason(text: Column, bad: Column, drift: DriftSpec) -> Column:
    """The reason why a CSV line is bad. Spark reads an empty line as a row of nulls."""
    reason = F.when(~F.is_valid_utf8(text), F.lit(NOT_UTF8))
    return unreadable_reason(reason, bad.isNotNull() | (text == ""), "not a line of the schema", drift)


def changed_reason(reason: Column, changed: Column, drift: DriftSpec) -> Column:
    """REASON, or that the values of the fields CHANGED do not fit their types (see `exact`)."""
    words = F.when(changed.isNotNull(), F.concat(F.lit("values that their columns would change: "), changed))
    if drift.retyped == "quarantine":
        return F.coalesce(reason, words)
    return F.coalesce(reason, F.when(changed.isNotNull(), fatal(words))) if drift.retyped == "fail" else reason


def unreadable_reason(reason: Column, unread: Column, words: str | Column, drift: DriftSpec) -> Column:
    return _by_policy(reason, unread, F.lit(words) if isinstance(words, str) else words, drift.retyped)


def _is_one_object(text: Column) -> Column:
    """Whether only white space follows the object at the start of TEXT, which has been read already.

    If the first closing brace is the last character, the object must end there. Otherwise TEXT becomes the first
    element of an array, and the second one must be a name of ours that no text can contain.
    """
    ours = uuid.uuid4().hex
    array = F.concat(F.lit("["), text, F.lit(f',"{ours}"]'))
    whole = F.coalesce(F.get_json_object(array, "$[1]") == ours, F.lit(False))
    return F.when(F.octet_length(F.substring_index(text, "}", 1)) + 1 == F.octet_length(text), True).otherwise(whole)


def _repeated(names: Column) -> Column:
    once = F.array_distinct(names)
    return F.filter(once, lambda name: F.size(F.filter(names, lambda other: other == name)) > 1)


def _by_policy(reason: Column, condition: Column, words: Column, policy: str) -> Column:
    if policy == "quarantine":
        return reason.when(condition, words)
    return reason.when(condition, fatal(words)) if policy == "fail" else reason


def _retyped(fields: list[str], text: Column, data: Column) -> Column:
    """The fields that are in the text but not in the data."""
    lost = [
        F.when(data[name].isNull() & F.get_json_object(text, f"$['{name}']").isNotNull(), F.lit(name))
        for name in fields
        if "'" not in name
    ]
    return F.concat_ws(", ", *lost)


def _listed(words: str, names: Column) -> Column:
    return F.concat(F.lit(words), F.concat_ws(", ", names))
