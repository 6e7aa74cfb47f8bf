"""What `ixion pipeline replay` and `ixion pipeline backfill` read and print."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from ixion.pipelines.errors import SpecError
from ixion.pipelines.spec.source import Start

if TYPE_CHECKING:
    from ixion.pipelines.run.backfill import Backfilled
    from ixion.pipelines.run.replay import Replayed


def place_of(text: str, option: str) -> Start:
    """What --from or --to says. A time without a zone is UTC."""
    if text == "earliest":
        return Start(kind="earliest")
    if text == "latest":
        return Start(kind="latest")
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        hint = "allowed: earliest, latest, a time such as 2026-01-31T08:00:00Z"
        raise SpecError(f"{option} is {text!r}", hint=hint) from None
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return Start(kind="time", time_ms=int(aware.timestamp() * 1000))


def replayed_lines(done: Replayed, *, dry: bool, as_json: bool) -> Iterator[str]:
    taken = done.taken
    if as_json:
        yield json.dumps({"tried": done.tried, "taken": taken.to_json(), "still_bad": done.still_bad, "dry_run": dry})
        return
    if not done.tried:
        yield "no record in quarantine"
        return
    verb = "would pass" if dry else "passed"
    yield f"{taken.rows_in:,} of {done.tried:,} records {verb}" + ("" if dry else f" · {taken.rows_out:,} rows out")
    for reason, count in done.still_bad.items():
        yield f"still in quarantine: {count:,} · {reason}"


def backfilled_lines(done: Backfilled, *, dry: bool, as_json: bool) -> Iterator[str]:
    figures = done.figures
    if as_json:
        portions = [asdict(portion) for portion in done.portions]
        yield json.dumps({"portions": portions, "figures": figures.to_json(), "dry_run": dry})
        return
    for portion in done.portions:
        words = "left to be read" if dry else "read"
        yield f"{portion.topic}-{portion.partition}: offsets {portion.first:,} to {portion.end - 1:,} {words}"
    if not done.portions:
        yield "nothing is left to be read there"
    elif not dry:
        yield f"{figures.rows_in:,} rows in · {figures.rows_out:,} out · {figures.quarantined:,} quarantined"
