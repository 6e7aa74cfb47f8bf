"""The spelling of partitions and sort orders: `partition_by` and `sort_by` of a sink."""

from __future__ import annotations

import re
from typing import Final

from ixion.pipelines.spec.section import Section

# Iceberg's truncate is missing: PySpark cannot create a table with it.
_TRANSFORM: Final = r"(years|months|days|hours)\(\s*`?([\w.]+)`?\s*\)|(bucket)\(\s*(\d+)\s*,\s*`?([\w.]+)`?\s*\)"
_ORDER: Final = r"`?\w+`?(\s+(ASC|DESC))?(\s+NULLS\s+(FIRST|LAST))?"


def parts_of(text: str) -> tuple[str, str, str]:
    """The transform, its number, and the column; the first two are empty for a plain column."""
    found = re.fullmatch(_TRANSFORM, text.strip())
    if found is None:
        return "", "", text.strip().strip("`")
    return (found[1], "", found[2]) if found[1] else (found[3], found[4], found[5])


def column_of(text: str) -> str:
    return parts_of(text)[2]


def check_partitions(section: Section, texts: tuple[str, ...], kind: str) -> None:
    for text in texts:
        if "(" in text and (kind != "iceberg" or not parts_of(text)[0]):
            hint = "allowed is a column; for iceberg also years(c), months(c), days(c), hours(c), bucket(16, c)"
            section.fail(f"{section.label('partition_by')} holds {text!r}, which is no partition", "partition_by", hint)


def check_order(section: Section, texts: tuple[str, ...], kind: str) -> None:
    if texts and kind != "iceberg":
        section.fail(f"a {kind} table has no sort order; only iceberg tables have one", "sort_by")
    for text in texts:
        if not re.fullmatch(_ORDER, text.strip(), re.IGNORECASE):
            section.fail(f'{section.label("sort_by")} holds {text!r}; write a column, "c" or "c DESC"', "sort_by")
