"""What the page may read of the broker that it belongs to."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ixion.broker.web.console.caller import NOBODY, Caller

if TYPE_CHECKING:
    import socket

    from ixion.broker.acl.authorizer import Authorizer
    from ixion.broker.coordinators.group.coordinator import GroupCoordinator
    from ixion.broker.coordinators.txn.coordinator import TransactionCoordinator
    from ixion.broker.log.manager import LogManager
    from ixion.broker.metadata.image import ClusterImage
    from ixion.broker.network.connection import Connection
    from ixion.broker.network.request_times import RequestTimes
    from ixion.broker.network.snapshot import NetworkSnapshot
    from ixion.broker.quota.quotas import Quotas
    from ixion.broker.replica.manager import ReplicaManager
    from ixion.broker.schedules.schedules import Schedules
    from ixion.broker.security.credentials import ScramCredentials
    from ixion.broker.security.gate import Gate
    from ixion.broker.security.tokens import Tokens
    from ixion.broker.share.manager import ShareManager
    from ixion.broker.web.console.api.registry import Registry
    from ixion.broker.web.console.door import Door
    from ixion.broker.web.console.history import History
    from ixion.broker.web.console.others import Others
    from ixion.clients.address import Address
    from ixion.config.dynamic import DynamicConfig
    from ixion.purgatory.purgatory import DelayedOperationPurgatory
    from ixion.timer.loop_timer import LoopTimer
    from ixion.timer.stall_watch import StallWatch


@dataclass(frozen=True, slots=True, kw_only=True)
class Inside:
    """Functions return what may not be there yet: the coordinators are made when they are first needed."""

    version: str
    node_id: int
    cluster_id: str
    bootstrap: str  # an address for the commands that the page shows
    clock_ms: Callable[[], int]
    config: DynamicConfig
    image: ClusterImage
    replicas: ReplicaManager
    logs: LogManager
    timer: LoopTimer
    stalls: StallWatch
    schedules: Schedules
    network: Callable[[], NetworkSnapshot]
    connections: Callable[[], list[Connection]]
    times: RequestTimes
    bounds_ns: Sequence[int]  # of its buckets
    throttled: Mapping[str, int]  # throttled responses by quota
    quotas: Quotas
    purgatories: Callable[[], tuple[DelayedOperationPurgatory, ...]]
    groups: Callable[[], GroupCoordinator | None]
    transactions: Callable[[], TransactionCoordinator | None]
    share_leaders: Callable[[], ShareManager | None]
    credentials: ScramCredentials
    tokens: Tokens
    authorizer: Authorizer | None
    ailments: Callable[[], list[str]]  # the problems of this broker, one line each
    history: History
    others: Others
    working: asyncio.Semaphore  # bounds the looks at records that worker threads do at a time
    closed: Callable[[], str]  # why the page shows nothing; empty: it does
    door: Door
    registry: Registry | None  # of schemas (web.schema.registry.url)
    writes: bool  # whether it may change anything (web.write)
    address: Address  # of the listener that `connect` connects to, for messages
    connect: Callable[[str, Gate | None], socket.socket]  # see `SocketServer.connect_within`
    caller: Caller = NOBODY  # for whom it reads and acts
