"""The usual JSON record, found by one cheap check: only what Spark finds while reading can be wrong with it.

Most records of a topic are just what its schema says. To look for everything that could be wrong with a record (see
`drift`) takes more time than to read it. So one question is asked of all records, and the others only of those that do
not pass: is this one object, valid UTF-8, without repeated keys and with keys of the schema only?

Spark can list the keys of an object, but stops at its closing brace: text after it goes unseen. So the brace at the
end of the text is replaced by one more key, ours:

    {"id": 1, "n": 2}            {"id": 1, "n": 2,"5f2e…":0}         keys id, n, 5f2e…
    {"id": 1}{"id": 2}           {"id": 1}{"id": 2,"5f2e…":0}        keys id
    {"id": {"n": 2}              {"id": {"n": 2,"5f2e…":0}           no object

Our key is among the keys only if the brace was the one that closes the first object, and so the end of all. It cannot
be in the text: it is a number that each process makes up. `{}` fails this check, and gets the full one.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from typing import Final

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F

from ixion.pipelines.spec.format import FormatSpec

REPLACES: Final = "spark.sql.legacy.codingErrorAction"  # if true, decode() replaces what is not valid
_OURS: Final = uuid.uuid4().hex
_BLANKS: Final = " \t\r\n"


def closed_keys(text: Column) -> Column:
    """The keys of the object in TEXT, ours the last if nothing comes after it; null if there is no object."""
    trimmed = F.rtrim(text, F.lit(_BLANKS))
    whole = F.when(F.endswith(text, F.lit("}")), text).when(F.endswith(trimmed, F.lit("}")), trimmed).cast("binary")
    body = F.substring(whole, F.lit(1), F.octet_length(whole) - 1).cast("string")
    return F.json_object_keys(F.concat(body, F.lit(f',"{_OURS}":0}}')))


def is_usual(closed: Column, fields: Sequence[str], spec: FormatSpec) -> Column:
    """CLOSED is from `closed_keys`. The usual order is that of the schema; any other takes a little longer."""
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


def valid_utf8(text: Column, spark: SparkSession) -> Column:
    """Whether TEXT is valid. Java decodes and encodes it sooner than Spark looks at its bytes one by one."""
    if spark.conf.get(REPLACES, "false") != "true":
        return F.is_valid_utf8(text)
    return F.decode(text.cast("binary"), "UTF-8") == text
