"""Finds the usual JSON records by cheap checks. In these, only errors that Spark reports itself are possible.

Most records of a topic match its schema exactly. The full check of a record (see `drift`) takes longer than reading it.
So all records get a cheap check, and only those that fail it get the full one: is it one object, in valid UTF-8,
without repeated keys, and with keys of the schema only?

Spark stops at the closing brace of an object and does not see text after it. So the brace at the end of the text is
replaced by one more key, ours:

    {"id": 1, "n": 2}            {"id": 1, "n": 2,"5f2e…":0}         id, n and ours are read
    {"id": 1}{"id": 2}           {"id": 1}{"id": 2,"5f2e…":0}        id is read
    {"id": {"n": 2}              {"id": {"n": 2,"5f2e…":0}           no object

Our key is read only if that brace closed the first object; then nothing follows the object. No text contains our key
by itself: it is a random number of this process.

**While it is read** (`has_known_keys`): Spark does not tell the keys that it skips, so they are counted. Every key is
followed by a colon, and before that colon is a quote or white space. So an object has at most as many keys, also in
objects inside of it, as there are such pairs of characters in its text. If that many different fields of the schema
were read, or are in the text as keys with the value null, then there are no other keys, and none is there twice:

    {"id": 1, "at": "2026-01-31T08:00:00Z"}          2 pairs, 2 fields: usual
    {"id": 1, "at": null}                            2 pairs, 1 field, and `"at":` is in the text: usual
    {"id": 1, "more": {"x": 2}}                      3 pairs, 1 field
    {"id": 1, "id": 2}                               2 pairs, 1 field
    {"id": "\\"at\\": 5"}                            2 pairs, 1 field: not usual by this check, but by the next one

**By a second reading** (`is_usual`): of the others, Spark lists the keys. `{}` fails this too, and gets the full check.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F
from pyspark.sql import types as T

from ixion.pipelines.formats.added_columns import BAD_TEXT
from ixion.pipelines.formats.nested_fields import has_objects
from ixion.pipelines.spark.java_text import JavaText
from ixion.pipelines.spec.format import FormatSpec

OURS: Final = uuid.uuid4().hex
_BLANKS: Final = " \t\r\n"
_SEARCHED: Final = 30  # fields for which an absent value is searched in the text; each makes the plan larger
_ODD: Final = frozenset('"\\')  # characters that JSON escapes
_REPLACEMENT: Final = "\ufffd"  # Java's decoder puts it in the place of invalid bytes


def can_be_counted(schema: T.StructType, spec: FormatSpec) -> bool:
    """Whether `has_known_keys` works: all keys are at one level, and before every key is a quote."""
    plain = spec.json.strict and not any(name.lower().startswith("allow") for name in spec.options)
    return plain and not any(has_objects(field.dataType) or _ODD & set(field.name) for field in schema.fields)


def closed(text: Column) -> Column:
    """TEXT with our key, which Spark reads if nothing follows the object. Read without it, the fields are the same.

    For that the text must not be `{}`, so only those that begin with a key get it.
    """
    ours = F.startswith(text, F.lit('{"')) & F.endswith(text, F.lit("}"))
    return F.when(ours, _with_ours(text)).otherwise(text)


def has_known_keys(text: Column, java: JavaText, data: Column, fields: Sequence[str], spec: FormatSpec) -> Column:
    """DATA was read from `closed`; JAVA searches in TEXT. Of a valid text, true means that it is usual."""
    colons = java.count('":')
    for blank in _BLANKS:  # the others are rare, and to look for one character takes less time
        count = java.count(f"{blank}:")
        colons = colons + (count if blank == " " else F.when(java.contains_character(blank), count).otherwise(0))
    known = F.lit(0)
    searched = spec.drift.missing == "null" and len(fields) <= _SEARCHED
    for name in fields:
        there = data[name].isNotNull()
        if searched:  # `"name":` is a key, unless its first quote is escaped and ends no text
            there = there | (java.contains(f'"{name}":') & ~java.contains(f'\\"{name}":'))
        known = known + F.when(there, 1).otherwise(0)
    valid = ~java.contains_character(_REPLACEMENT) | F.is_valid_utf8(text)
    read = data[OURS].isNotNull() & data[BAD_TEXT].isNull()  # after an error, Spark may go on with the next field
    if spec.drift.missing != "null":
        read = read & (known == len(fields))
    # What comes first is always evaluated: only then does Spark decode the text once for all searches.
    return F.coalesce((known == colons) & read & valid, F.lit(False))


def closed_keys(text: Column) -> Column:
    """The keys of the object in TEXT, with ours as the last if nothing follows the object; null if there is none."""
    trimmed = F.rtrim(text, F.lit(_BLANKS))
    whole = F.when(F.endswith(text, F.lit("}")), text).when(F.endswith(trimmed, F.lit("}")), trimmed)
    return F.json_object_keys(_with_ours(whole))


def _with_ours(text: Column) -> Column:
    """TEXT with one more key in the place of its last character."""
    whole = text.cast("binary")
    body = F.substring(whole, F.lit(1), F.octet_length(whole) - 1).cast("string")
    return F.concat(body, F.lit(f',"{OURS}":0}}'))


def is_usual(closed: Column, fields: Sequence[str], spec: FormatSpec) -> Column:
    """CLOSED is from `closed_keys`. Keys in the order of the schema are checked faster than in any other order."""
    known = F.array(*(F.lit(name) for name in (*fields, OURS)))
    same = closed == known
    if spec.drift.missing != "null":
        return same
    fitting = (F.element_at(closed, -1) == OURS) & (F.size(F.array_except(closed, known)) == 0)
    return F.when(same, True).otherwise(fitting & (F.size(closed) == F.size(F.array_distinct(closed))))


def keys_of(closed: Column, text: Column) -> Column:
    """The keys of the object that TEXT begins with, null if there is none; CLOSED is from `closed_keys`."""
    ended = F.element_at(closed, -1) == OURS
    return F.when(ended, F.slice(closed, F.lit(1), F.size(closed) - 1)).otherwise(F.json_object_keys(text))


def valid_utf8(text: Column) -> Column:
    """Whether TEXT is valid. Spark's own check looks at each byte and takes three times as long as Java's decoder.

    To split a text, Spark decodes it, and invalid bytes become U+FFFD. So a text that does not split there is valid.
    Only a text that does needs Spark's check: U+FFFD may have been in it.
    """
    return (F.size(F.split(text, _REPLACEMENT, 2)) == 1) | F.is_valid_utf8(text)
