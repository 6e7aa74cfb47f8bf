"""A stream reader that limits its batches, for Spark 4.2 and newer. Import it only if `CAN_LIMIT` says so.

Spark says how far the query has read and how much it wants, and says beforehand that a query with `availableNow`
begins: then the ends of that moment are kept, and the query ends when it has read up to them.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql.streaming.datasource import (  # type: ignore[import-not-found, unused-ignore]
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)

from ixion.clients.admin.offsets import EARLIEST, LATEST
from ixion.spark import places
from ixion.spark.places import Offsets
from ixion.spark.source import StreamReader
from ixion.spark.split import limited


class LimitedStreamReader(StreamReader, SupportsTriggerAvailableNow):  # type: ignore[misc]
    _target: Offsets | None = None

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        most = self._options.max_offsets_per_trigger
        return ReadMaxRows(most) if most else ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._target = self._ends()

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # type: ignore[override] # noqa: N802
        ends = self._ends() if self._target is None else self._target
        if isinstance(limit, ReadMaxRows):
            starts = places.from_json(start)
            new = [place for place in ends if place not in starts]
            if new:
                with places.connect(self._options) as admin:
                    starts.update(places.ends(admin, new, EARLIEST, self._options))
            ends = limited({place: (starts[place], end) for place, end in ends.items()}, limit.max_rows)
        return places.to_json(ends)

    def reportLatestOffset(self) -> dict[str, Any]:  # noqa: N802
        """For the progress of the query, which shows by how much it is behind."""
        return places.to_json(self._ends())

    def _ends(self) -> Offsets:
        with places.connect(self._options) as admin:
            return places.ends(admin, places.find_partitions(admin, self._options), LATEST, self._options)
