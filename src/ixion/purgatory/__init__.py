"""Delayed operations, which wait for a condition or a timeout, and their purgatory. Built on `ixion.timer` only."""

# The modules of this package are compiled: see setup.py.

from ixion.purgatory.operation import DelayedOperation
from ixion.purgatory.purgatory import DelayedOperationPurgatory
from ixion.purgatory.snapshot import PurgatorySnapshot

__all__ = ["DelayedOperation", "DelayedOperationPurgatory", "PurgatorySnapshot"]
