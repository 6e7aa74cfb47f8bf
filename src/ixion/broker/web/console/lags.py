"""The lag of each group over the last hour, one value a minute: 240 bytes a group, for `MOST` groups at most.

Groups that come when there is no room are left out until others have gone. A value is what the group had not read of
the partitions that have a replica on this broker.
"""

from __future__ import annotations

from array import array
from typing import TYPE_CHECKING, Final

from ixion.timer.turns import Steps

if TYPE_CHECKING:
    from ixion.broker.web.console.inside import Inside

MOST: Final = 1_000
KEPT: Final = 60
STEP_S: Final = 60
NO_VALUE: Final = -1.0  # the group was not there


class Lags:
    def __init__(self) -> None:
        self.looks = 0
        self._rings: dict[str, array[float]] = {}

    def look(self, inside: Inside) -> Steps[None]:
        from ixion.broker.web.console.api.groups import all_groups, lag_of

        found = yield from all_groups(inside)
        at = self.looks % KEPT
        for name in [each for each in self._rings if each not in found]:
            del self._rings[name]
        for name, (shard, group) in found.items():
            ring = self._rings.get(name)
            if ring is None and len(self._rings) < MOST:
                ring = self._rings[name] = array("f", [NO_VALUE] * KEPT)
            if ring is not None:
                ring[at] = yield from lag_of(inside, shard, group)
            yield
        self.looks += 1

    def of(self, group: str, now: float) -> list[float]:
        """The oldest first; `now` is the last value."""
        ring = self._rings.get(group)
        if ring is None:
            return [now]
        at = self.looks % KEPT
        return [float(each) for each in (*ring[at:], *ring[:at]) if each != NO_VALUE] + [now]
