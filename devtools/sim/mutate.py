"""Takes a rule out of the brokers."""

from __future__ import annotations

from typing import Any, Final

from ixion.broker.log.directory import LogDirectory
from ixion.broker.replica.partition import Partition

# Their attributes are not those of the class.
OF_OBJECTS: Final = (Partition, LogDirectory)


def put(owner: Any, name: str, instead: Any) -> None:
    assert hasattr(owner, name) or owner in OF_OBJECTS, f"{owner} has no {name}"
    setattr(owner, name, instead)
