"""How many histories a state machine runs: some in `make test`, compiled and interpreted, many in `make fuzz`."""

from __future__ import annotations

import os


def lives(usual: int) -> int:
    """The number of examples; IXION_LIVES sets another for all machines."""
    return int(os.environ.get("IXION_LIVES", usual))
