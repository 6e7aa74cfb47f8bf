"""What `ixion pipeline doctor` prints."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import TYPE_CHECKING

from ixion.cli.output import show_table

if TYPE_CHECKING:
    from ixion.pipelines.run.doctor import Diagnosis


def show_diagnosis(found: Diagnosis, *, as_json: bool) -> None:
    if as_json:
        print(json.dumps(asdict(found)))
        return
    tables = list(found.places[0].tables) if found.places else []
    rows = []
    for place in found.places:
        there = "gone" if place.end is None else f"{place.first} to {place.end}"
        rows.append((f"{place.topic}-{place.partition}", there, place.checkpoint, *place.tables.values()))
    show_table(("partition", "in the topic", "checkpoint", *tables), rows, right=("checkpoint", *tables))
    for finding in found.findings:
        print(f"\n{finding.message}")
        if finding.hint:
            print(finding.hint)
    if not found.findings:
        print("\ntopics, checkpoint and tables agree")
