"""What handlers may use. Each takes from it, once, the few things it needs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ixion.config.dynamic import DynamicConfig
from ixion.controller.controller import Controller
from ixion.coordinators.txn.coordinator import TransactionCoordinator
from ixion.metadata.image import ClusterImage
from ixion.replica.internal_topic import InternalTopic
from ixion.replica.manager import ReplicaManager
from ixion.security.credentials import ScramCredentials
from ixion.timer.timer import Timer

if TYPE_CHECKING:
    from ixion.coordinators.group.coordinator import GroupCoordinator


@dataclass(slots=True, kw_only=True)
class Services:
    node_id: int
    cluster_id: str
    config: DynamicConfig
    image: ClusterImage
    replicas: ReplicaManager
    controller: Controller
    timer: Timer
    internal_topics: dict[str, InternalTopic]  # by name
    make_groups: Callable[[], GroupCoordinator]
    transactions: TransactionCoordinator
    credentials: ScramCredentials
    clock_ms: Callable[[], int]
    loop: asyncio.AbstractEventLoop

    @property
    def groups(self) -> GroupCoordinator:
        """Made when it is first asked for: its code is a third of all that a broker imports."""
        return self.make_groups()
