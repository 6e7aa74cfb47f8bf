"""Which offsets a table has, stored by the table itself.

A checkpoint can be restored from a backup, and so can a table: each alone, or it is deleted. Numbers of batches do not
show that, because they count on from wherever the checkpoint is. So every commit of a batch also stores the offsets
that the table has from then on, with the ids of the topics:

    {"writer": "shop-2f0e…", "batch": 12, "offsets": {"orders": {"0": 50}}, "ids": {"orders": "uzGo…"}}

    Delta       `userMetadata` of the commit; followed back through RESTORE
    Iceberg     the summary of the snapshot; a property of the table for when the snapshots have expired
    Parquet     the list of moves that decides the batch

A batch counts as done if the table has exactly the offsets at which it ends. A batch without records ends where the one
before has ended; of these, the number decides. `run.agreement` compares tables and checkpoint before a run.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, Final

from ixion.pipelines.batch.metrics import Offsets

KEY: Final = "ixion-reached"  # in a snapshot's summary, in a list of moves
PROPERTY: Final = "ixion.reached."  # of an Iceberg table; a writer's name follows


@dataclass(frozen=True, slots=True, kw_only=True)
class Reached:
    """The table has all records before OFFSETS (topic -> partition -> next offset), from where the pipeline began."""

    writer: str
    batch: int
    offsets: Offsets
    ids: Mapping[str, str] = field(default_factory=dict)

    def to_text(self) -> str:
        return json.dumps(asdict(self))


def nothing(writer: str) -> Reached:
    """Of a table that has lost all batches of WRITER."""
    return Reached(writer=writer, batch=-1, offsets={})


def reached_of(text: object, writer: str) -> Reached | None:
    """None if TEXT is something else, or of another writer."""
    try:
        found: dict[str, Any] = json.loads(str(text))
        reached = Reached(**found)
    except (TypeError, ValueError):
        return None
    return reached if reached.writer == writer else None
