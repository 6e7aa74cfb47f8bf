"""The loads beside the plain producers, by name."""

from __future__ import annotations

import random
from typing import Final

from devtools.sim.changes import Changes, Moves
from devtools.sim.cleaning import Cleaning, Swept
from devtools.sim.client_copies import ClientCopies
from devtools.sim.clients import Clients
from devtools.sim.delayed import Delayed, Scheduled
from devtools.sim.deletions import Deletions
from devtools.sim.directories import Directories
from devtools.sim.groups import Groups
from devtools.sim.job import Job
from devtools.sim.nearest import Nearest
from devtools.sim.shares import Shares
from devtools.sim.transactions import Copies, Transactions

SHARE: Final = 1 / 14

JOBS: Final[dict[str, type[Job]]] = {
    "none": Job,
    "groups": Groups,
    "transactions": Transactions,
    "copies": Copies,
    "changes": Changes,
    "moves": Moves,
    "delayed": Delayed,
    "directories": Directories,
    "cleaning": Cleaning,
    "swept": Swept,
    "scheduled": Scheduled,
    "nearest": Nearest,
    "clients": Clients,
    "client-copies": ClientCopies,
    "deletions": Deletions,
    "shares": Shares,
}
# Loads that came later: each takes its share of the seeds, and the others keep the load that they had.
LATER: Final = (
    *("directories", "cleaning", "swept", "scheduled", "nearest", "clients", "client-copies", "deletions"),
    *("shares",),
)


def draw(seed: int) -> str:
    """Nearly every other seed has plain producers only."""
    for name in LATER:
        if random.Random(f"{name} {seed}").random() < SHARE:
            return name
    first = [name for name in JOBS if name not in LATER]
    return random.Random(seed * 3 + 2).choice((*["none"] * (len(first) - 1), *first[1:]))
