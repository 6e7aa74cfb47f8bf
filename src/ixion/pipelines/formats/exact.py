"""Values of a record that its column would change without a word.

Spark reads what it can and takes the nearest value that the type has. A pipeline treats these as fields of another type
(`retyped`):

    price DECIMAL(10,2)    123.455          would be 123.46
    price DECIMAL(10,2)    1e-19            would be 0.00
    amount DOUBLE          1e400            would be infinite
    at TIMESTAMP           1767225600000    milliseconds, taken for seconds: the year 57970
    day DATE               "+12026-01-31"   a year beyond 9999, which other readers (delta-rs, pandas) do not know

Infinite numbers and far dates are seen in what was read. Rounding is seen only in the text. Reading it a second time
takes as long as the first time, so the usual record is matched with a pattern, for which its keys must be known (see
`json_fast_path`): `"price":` and a number with at most two digits after the point. All others are read again, with
their decimals as text:

    exact       the digits after the point, without zeros at the end, less the exponent, are at most the scale
    12.50       1 digit                 1.5e3       1 - 3 digits            1e-19       19 digits: not exact
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

_FIRST: Final = "0001-01-01 00:00:00"  # UTC
_BEYOND: Final = "+10000-01-01 00:00:00"
_NUMBER: Final = r"^\s*[-+]?\d*(?:\.(\d*?)0*)?(?:[eE]([+-]?\d{1,6}))?\s*$"
_ZERO: Final = r"^\s*[-+]?[0.]+(?:[eE].*)?\s*$"
_ODD: Final = frozenset('"\\')  # in a name, JSON escapes them
_FLOATING: Final = (T.DoubleType, T.FloatType)
_TIMES: Final = (T.DateType, T.TimestampType, T.TimestampNTZType)


def has_decimals(kind: T.DataType) -> bool:
    return _holds(kind, (T.DecimalType,))


def can_change(kind: T.DataType) -> bool:
    return _holds(kind, (T.DecimalType, *_FLOATING, *_TIMES))


def with_texts(schema: T.StructType) -> T.StructType:
    """Those fields of SCHEMA that have decimals, with text in their place."""
    return T.StructType(
        [T.StructField(one.name, _with_texts(one.dataType)) for one in schema.fields if has_decimals(one.dataType)]
    )


def changed_names(
    schema: T.StructType,
    data: Column,
    raw: Column,
    *,
    infinite: bool,
    is_exact: Callable[[T.StructField], Column] | None = None,
) -> Column | None:
    """The fields of DATA that are not what the record says, as one text; null if there are none. None if no type of
    SCHEMA changes values.

    RAW is the record read with `with_texts(SCHEMA)`. INFINITE: no number is infinite by itself. IS_EXACT is a cheap
    condition for a field that is a decimal: true if it was not rounded.
    """
    far = (*_FLOATING, *_TIMES) if infinite else _TIMES
    conditions: list[Column] = []  # checked first: names are put together for the few records that need them
    changed: list[Column] = []
    for field in schema.fields:
        column, kind = data[field.name], field.dataType
        found = [_any(column, kind, far, _is_far)] if _holds(kind, far) else []
        if has_decimals(kind):
            rounded = _any(raw[field.name], kind, (T.DecimalType,), _is_rounded)
            if is_exact is not None and isinstance(kind, T.DecimalType):
                rounded = column.isNotNull() & ~is_exact(field) & rounded
            found.append(rounded)
        if found:
            conditions.append(_either(found))
            changed.append(F.when(conditions[-1], F.lit(field.name)))
    return F.when(_either(conditions), F.concat_ws(", ", *changed)) if changed else None


def exact_in(text: Column, fits: Column) -> Callable[[T.StructField], Column]:
    """A condition for decimals of the JSON objects in TEXT, of which FITS says whether each key is there once."""

    def is_exact(field: T.StructField) -> Column:
        assert isinstance(field.dataType, T.DecimalType)
        if _ODD & set(field.name):
            return F.lit(False)
        digits = rf"\.\d{{0,{field.dataType.scale}}}0*"
        pattern = rf'"\Q{field.name}\E"\s*:\s*-?\d+(?:{digits})?\s*[,}}]'
        return F.coalesce(fits & F.rlike(text, F.lit(pattern)), F.lit(False))

    return is_exact


def without_changed(column: Column, name: str, changed: Column) -> Column:
    """COLUMN, the field NAME, but null if it is among CHANGED."""
    kept = F.coalesce(~F.array_contains(F.split(changed, ", "), name), F.lit(True))
    return F.when(kept, column)


def _with_texts(kind: T.DataType) -> T.DataType:
    if isinstance(kind, T.DecimalType):
        return T.StringType()
    if isinstance(kind, T.StructType):
        return with_texts(kind)
    if isinstance(kind, T.ArrayType):
        return T.ArrayType(_with_texts(kind.elementType))
    if isinstance(kind, T.MapType):
        return T.MapType(kind.keyType, _with_texts(kind.valueType))
    return kind


def _holds(kind: T.DataType, kinds: tuple[type[T.DataType], ...]) -> bool:
    """Whether a value of one of KINDS can be in one of KIND. Keys of maps are texts in JSON."""
    if isinstance(kind, T.StructType):
        return any(_holds(field.dataType, kinds) for field in kind.fields)
    if isinstance(kind, T.ArrayType | T.MapType):
        return _holds(kind.elementType if isinstance(kind, T.ArrayType) else kind.valueType, kinds)
    return isinstance(kind, kinds)


def _any(
    column: Column,
    kind: T.DataType,
    kinds: tuple[type[T.DataType], ...],
    test: Callable[[Column, T.DataType], Column],
) -> Column:
    """Whether TEST holds for any value of KINDS in COLUMN."""
    if isinstance(kind, T.StructType):
        inside = [field for field in kind.fields if _holds(field.dataType, kinds)]
        return _either([_any(column[field.name], field.dataType, kinds, test) for field in inside])
    if isinstance(kind, T.ArrayType):
        return F.exists(column, lambda item: _either([_any(item, kind.elementType, kinds, test)]))
    if isinstance(kind, T.MapType):
        return F.exists(F.map_values(column), lambda item: _either([_any(item, kind.valueType, kinds, test)]))
    return test(column, kind)


def _either(conditions: list[Column]) -> Column:
    """Whether one of CONDITIONS is true; null counts as false."""
    return reduce(lambda one, other: one | other, (F.coalesce(one, F.lit(False)) for one in conditions))


def _is_far(column: Column, kind: T.DataType) -> Column:
    if isinstance(kind, _FLOATING):
        return F.abs(column) == float("inf")
    zone = "Z" if isinstance(kind, T.TimestampType) else ""
    first, beyond = (F.lit(f"{text}{zone}").cast(kind) for text in (_FIRST, _BEYOND))
    return (column < first) | (column >= beyond)


def _is_rounded(column: Column, kind: T.DataType) -> Column:
    """COLUMN is the text of a number. A text that is none has been refused by Spark, or is read by a locale."""
    assert isinstance(kind, T.DecimalType)
    digits = F.length(F.regexp_extract(column, _NUMBER, 1))
    exponent = F.coalesce(F.regexp_extract(column, _NUMBER, 2).try_cast("int"), F.lit(0))
    is_number = F.rlike(column, F.lit(_NUMBER)) & ~F.rlike(column, F.lit(_ZERO))
    return is_number & (digits - exponent > kind.scale)
