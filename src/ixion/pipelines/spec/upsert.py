"""Sinks that change rows: `mode = "upsert"` keeps one row for each key, `mode = "scd2"` one for each version."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ixion.pipelines.spec.section import Section

SETTINGS: Final = ("mode", "keys", "order", "delete_when", "deletes", "keys_stay")
OFFSET: Final = "kafka_offset"
_ROWWISE: Final = ("delta", "iceberg")  # tables whose rows can be changed


@dataclass(frozen=True, slots=True, kw_only=True)
class UpsertSpec:
    keys: tuple[str, ...]
    order: str = OFFSET  # a column; of two rows with the same key, the one with the larger value counts
    delete_when: str | None = None  # a SQL predicate; None: tombstones and Debezium's deletes, if the rows have them
    history: bool = False  # scd2: keep the old row when a newer one comes (see `sinks.history`)
    keys_stay: bool = False  # no key is ever in two partitions, so offsets order its changes whatever happens
    deletes: str = "remove"  # remove the row; or "mark" it, so that a late change does not bring it back


def read_upsert(section: Section, kind: str) -> UpsertSpec | None:
    """None for a sink that only adds rows."""
    mode = section.choice("mode", ("append", "upsert", "scd2"), "append")
    if mode == "append":
        for name in SETTINGS[1:]:
            if name in section:
                section.fail(f'{section.label(name)} is for mode = "upsert" or "scd2"', name)
        return None
    if kind not in _ROWWISE:
        section.fail(f"rows of a {kind} sink cannot be changed; those of delta and iceberg can", "mode")
    keys = section.texts("keys")
    if not keys:
        section.fail(f'mode = "{mode}" needs keys = ["…"], the columns that identify a row')
    order = section.text("order", OFFSET)
    if order in keys:
        section.fail(f"{section.label('order')} is {order}, which is one of the keys", "order")
    return UpsertSpec(
        keys=keys,
        order=order,
        history=mode == "scd2",
        delete_when=section.optional_text("delete_when"),
        keys_stay=section.flag("keys_stay", False),
        deletes=section.choice("deletes", ("remove", "mark"), "remove" if order == OFFSET else "mark"),
    )
