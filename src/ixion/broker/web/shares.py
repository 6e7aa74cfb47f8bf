"""The metrics of share groups whose partitions this broker leads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from ixion.broker.share.manager import ShareManager
    from ixion.broker.web.exposition import Exposition

STATES: Final = {
    0: "available",
    1: "acquired",
    2: "acknowledged",
    3: "waiting for a dead letter",
    4: "archived",
    5: "deferred",
    6: "being stored",
}


def shares(page: Exposition, here: ShareManager | None) -> None:
    """None: no share group has fetched from this broker yet."""
    if here is None:
        return
    figures = here.figures
    page.gauge("ixion_share_sessions", "Members of share groups that fetch from this broker.", len(here.sessions))
    page.gauge("ixion_share_partitions", "Partitions of share groups that are delivered here.", len(here.leaders))
    page.gauge(
        "ixion_share_records",
        "Records between the start and the end of a share partition, by state.",
        [({"state": name}, count) for name, count in zip(STATES.values(), here.tallies(tuple(STATES)), strict=True)],
    )
    page.gauge(
        "ixion_share_runs", "Runs of neighbouring records in the same state, 23 bytes of memory each.", here.runs
    )
    page.gauge(
        "ixion_share_partitions_stopped",
        "Share partitions that deliver nothing new because too many single records wait or are finished out of order.",
        here.stopped,
    )
    page.counter(
        "ixion_share_released_total",
        "Records that came back, by cause.",
        [({"cause": cause}, count) for cause, count in figures.released.items()],
    )
    page.counter(
        "ixion_share_archived_total",
        "Records that will not be delivered again, by cause.",
        [({"cause": cause}, count) for cause, count in figures.archived_by.items()],
    )
    for name, meaning, count in (
        ("acquired", "Records given to members.", figures.acquired),
        ("acknowledged", "Records accepted by members.", figures.acknowledged),
        ("expired", "Records whose lock ended without an acknowledgement.", figures.expired),
        ("deferred", "Records that came back with a delay.", figures.deferred),
        ("due", "Deferred records that became available.", figures.due),
        ("writes", "Writes of states to the share coordinator.", figures.writes),
        ("dead_letters", "Dead letters written.", figures.dead_letters),
        ("failed_letters", "Attempts to write dead letters that failed, and are repeated.", figures.failed_letters),
        ("failed_writes", "Writes that the share coordinator refused or did not answer.", figures.failed_writes),
    ):
        page.counter(f"ixion_share_{name}_total", meaning, count)
