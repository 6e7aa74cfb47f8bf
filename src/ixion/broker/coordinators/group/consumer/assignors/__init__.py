"""How the partitions of a consumer group are shared out: `range` and `uniform`, in steps (`ixion.timer.turns`).

Neither looks at racks. A member may name its rack, which is stored and described, but Kafka's own assignors, up to 4.3,
do not use it either: racks matter for fetching from the closest replica, not for the assignment.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from ixion.broker.coordinators.group.consumer.assignment import Assignment
from ixion.broker.coordinators.group.consumer.assignors.range import assign_range
from ixion.broker.coordinators.group.consumer.assignors.spec import Spec
from ixion.broker.coordinators.group.consumer.assignors.uniform import assign_uniform
from ixion.timer.turns import Steps

ASSIGNORS: Final[Mapping[str, Callable[[Spec], Steps[dict[str, Assignment]]]]] = {
    "uniform": assign_uniform,
    "range": assign_range,
}
