"""Names of the columns that a pipeline adds beside those of the user."""

from __future__ import annotations

from typing import Final

REASON: Final = "_reason"  # why a row is not wanted; null for the others
RECORD: Final = "_record"  # the record as it came, for rows that go to the quarantine; null for the others
EXTRA: Final = "_extra"  # fields that the schema does not know, as JSON

# What the quarantine table holds of a record, in this order; then the reason.
RECORD_FIELDS: Final = ("topic", "partition", "offset", "timestamp", "key", "value", "headers")
HIDDEN: Final = (REASON, RECORD)
