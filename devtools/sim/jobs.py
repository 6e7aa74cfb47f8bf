"""The loads beside the plain producers, by name."""

from __future__ import annotations

import random
from typing import Final

from devtools.sim.changes import Changes, Moves
from devtools.sim.delayed import Delayed
from devtools.sim.groups import Groups
from devtools.sim.job import Job
from devtools.sim.transactions import Copies, Transactions

JOBS: Final[dict[str, type[Job]]] = {
    "none": Job,
    "groups": Groups,
    "transactions": Transactions,
    "copies": Copies,
    "changes": Changes,
    "moves": Moves,
    "delayed": Delayed,
}


def draw(seed: int) -> str:
    """Every other seed has plain producers only."""
    return random.Random(seed * 3 + 2).choice((*["none"] * (len(JOBS) - 1), *list(JOBS)[1:]))
