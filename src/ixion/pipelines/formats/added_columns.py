"""Names of the columns that a pipeline adds beside those of the user."""

from __future__ import annotations

from typing import Final

REASON: Final = "_reason"  # why a row is bad; null for good ones
RECORD: Final = "_record"  # the original record of a row for the quarantine; null for the others
BROKEN: Final = "_broken"  # the number of the expectation that a row breaks, while it is being judged
NEW: Final = "_new"  # JSON: the fields of a record that the schema does not know, by name; null if there are none
BAD_TEXT: Final = "_bad_text"  # where Spark puts a text that it could not read, while a record is being parsed
EXTRA: Final = "_extra"  # fields that the schema does not know, as JSON

# The columns of a record in the quarantine table, with their types; then the reason.
RECORD_TYPES: Final = {
    "topic": "string",
    "partition": "int",
    "offset": "long",
    "timestamp": "timestamp",
    "key": "binary",
    "value": "binary",
    "headers": "array<struct<key:string,value:binary>>",
}
HIDDEN: Final = (REASON, RECORD, NEW)
RESERVED: Final = (*HIDDEN, BROKEN, BAD_TEXT)  # no field of a record can be called so
