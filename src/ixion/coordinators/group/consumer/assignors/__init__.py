"""How the partitions of a consumer group are shared out: `range` and `uniform`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from ixion.coordinators.group.consumer.assignment import Assignment
from ixion.coordinators.group.consumer.assignors.range import assign_range
from ixion.coordinators.group.consumer.assignors.spec import Spec
from ixion.coordinators.group.consumer.assignors.uniform import assign_uniform

DEFAULT: Final = "uniform"
ASSIGNORS: Final[Mapping[str, Callable[[Spec], dict[str, Assignment]]]] = {
    DEFAULT: assign_uniform,
    "range": assign_range,
}
