"""The upkeep of a table: `[sinks.upkeep]`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ixion.pipelines.spec.section import Section

_MB: Final = 1 << 20
_ORPHANS_MS: Final = 24 * 3_600_000  # younger files may belong to an unfinished write; Iceberg refuses less, too


@dataclass(frozen=True, slots=True, kw_only=True)
class UpkeepSpec:
    compact_below_bytes: int | None = None  # files smaller than this are joined
    keep_ms: int | None = None  # replaced files and old versions older than this are removed
    every_ms: int | None = None  # time between two upkeeps; None: at the end of every run
    cluster_by: tuple[str, ...] = ()  # rows with similar values in these columns go into the same files
    orphans_ms: int | None = None  # files of no version, if older than this, are removed

    @property
    def wanted(self) -> bool:
        return bool(
            self.compact_below_bytes is not None or self.keep_ms is not None or self.cluster_by or self.orphans_ms
        )


def read_upkeep(section: Section | None, kind: str) -> UpkeepSpec:
    if section is None:
        return UpkeepSpec()
    section.only("compact_below_mb", "keep", "every", "cluster_by", "orphans")
    if kind == "parquet" and "keep" in section:
        section.fail("a parquet table has no old versions to keep; delta and iceberg tables have", "keep")
    if kind == "parquet" and "cluster_by" in section:
        section.fail("cluster_by is only for delta and iceberg", "cluster_by")
    if kind != "iceberg" and "orphans" in section:
        section.fail("orphans is only for iceberg; delta removes such files with keep", "orphans")
    orphans_ms = section.duration_ms("orphans")
    if orphans_ms is not None and orphans_ms < _ORPHANS_MS:
        section.fail("orphans must be at least a day: younger files may belong to an unfinished write", "orphans")
    megabytes = section.number("compact_below_mb")
    spec = UpkeepSpec(
        compact_below_bytes=None if megabytes is None else megabytes * _MB,
        keep_ms=section.duration_ms("keep"),
        every_ms=section.duration_ms("every"),
        cluster_by=section.texts("cluster_by"),
        orphans_ms=orphans_ms,
    )
    if not spec.wanted:
        section.fail("upkeep needs compact_below_mb, keep, cluster_by or orphans")
    return spec
