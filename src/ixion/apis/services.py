"""What handlers may use. Each takes from it, once, the few things it needs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from ixion.config.dynamic import DynamicConfig
from ixion.controller.controller import Controller
from ixion.coordinators.group.coordinator import GroupCoordinator
from ixion.coordinators.txn.coordinator import TransactionCoordinator
from ixion.metadata.image import ClusterImage
from ixion.replica.internal_topic import InternalTopic
from ixion.replica.manager import ReplicaManager
from ixion.timer.timer import Timer


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
    groups: GroupCoordinator
    transactions: TransactionCoordinator
    clock_ms: Callable[[], int]
    loop: asyncio.AbstractEventLoop
