"""Finds the usual JSON records by one cheap check. In these, only errors that Spark reports itself are possible.

Most records of a topic match its schema exactly. The full check of a record (see `drift`) takes longer than reading it.
So all records get one cheap check, and only those that fail it get the full one: is it one object, in valid UTF-8,
without repeated keys, and with keys of the schema only?

Spark can list the keys of an object, but stops at its closing brace and does not see text after it. So the brace at the
end of the text is replaced by one more key, ours:

    {"id": 1, "n": 2}            {"id": 1, "n": 2,"5f2e…":0}         keys id, n, 5f2e…
    {"id": 1}{"id": 2}           {"id": 1}{"id": 2,"5f2e…":0}        keys id
    {"id": {"n": 2}              {"id": {"n": 2,"5f2e…":0}           no object

Our key is among the keys only if that brace closed the first object; then nothing follows the object. No text contains
our key by itself: it is a random number of this process. `{}` fails this check, and gets the full one.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F

from ixion.pipelines.spec.format import FormatSpec

_OURS: Final = uuid.uuid4().hex
_BLANKS: Final = " \t\r\n"
_REPLACEMENT: Final = "\ufffd"  # Java's decoder puts it in the place of invalid bytes


def closed_keys(text: Column) -> Column:
    """The keys of the object in TEXT, with ours as the last if nothing follows the object; null if there is none."""
    trimmed = F.rtrim(text, F.lit(_BLANKS))
    whole = F.when(F.endswith(text, F.lit("}")), text).when(F.endswith(trimmed, F.lit("}")), trimmed).cast("binary")
    body = F.substring(whole, F.lit(1), F.octet_length(whole) - 1).cast("string")
    return F.json_object_keys(F.concat(body, F.lit(f',"{_OURS}":0}}')))


def is_usual(closed: Column, fields: Sequence[str], spec: FormatSpec) -> Column:
    """CLOSED is from `closed_keys`. Keys in the order of the schema are checked faster than in any other order."""
    known = F.array(*(F.lit(name) for name in (*fields, _OURS)))
    same = closed == known
    if spec.drift.missing != "null":
        return same
    fitting = (F.element_at(closed, -1) == _OURS) & (F.size(F.array_except(closed, known)) == 0)
    return F.when(same, True).otherwise(fitting & (F.size(closed) == F.size(F.array_distinct(closed))))


def keys_of(closed: Column, text: Column) -> Column:
    """The keys of the object that TEXT begins with, null if there is none; CLOSED is from `closed_keys`."""
    ended = F.element_at(closed, -1) == _OURS
    return F.when(ended, F.slice(closed, F.lit(1), F.size(closed) - 1)).otherwise(F.json_object_keys(text))


def valid_utf8(text: Column) -> Column:
    """Whether TEXT is valid. Spark's own check looks at each byte and takes three times as long as Java's decoder.

    To split a text, Spark decodes it, and invalid bytes become U+FFFD. So a text that does not split there is valid.
    Only a text that does needs Spark's check: U+FFFD may have been in it.
    """
    return (F.size(F.split(text, _REPLACEMENT, 2)) == 1) | F.is_valid_utf8(text)
