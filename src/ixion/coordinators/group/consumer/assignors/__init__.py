"""How the partitions of a consumer group are shared out: `range` and `uniform`, in steps (`ixion.timer.turns`).

Neither looks at racks. Members may tell theirs (it is stored and described), but Kafka's own assignors, up to 4.3, make
nothing of it either: where replicas stand is a matter for fetching (the closest replica), not for sharing out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from ixion.coordinators.group.consumer.assignment import Assignment
from ixion.coordinators.group.consumer.assignors.range import assign_range
from ixion.coordinators.group.consumer.assignors.spec import Spec
from ixion.coordinators.group.consumer.assignors.uniform import assign_uniform
from ixion.timer.turns import Steps

ASSIGNORS: Final[Mapping[str, Callable[[Spec], Steps[dict[str, Assignment]]]]] = {
    "uniform": assign_uniform,
    "range": assign_range,
}
