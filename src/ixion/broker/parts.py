"""The parts of a broker, as the start-up steps make them one after the other."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from ixion.apis.dispatch import Dispatch
from ixion.apis.services import Services
from ixion.broker.late_groups import LateGroups
from ixion.broker.pages import PagesAt
from ixion.broker.scheduler import Scheduler
from ixion.config.dynamic import DynamicConfig
from ixion.controller.controller import Controller
from ixion.coordinators.txn.coordinator import TransactionCoordinator
from ixion.log.files import Files
from ixion.log.manager import LogManager
from ixion.log.meta_properties import MetaProperties
from ixion.metadata.image import ClusterImage
from ixion.metadata.on_loop import EmbeddedEngine
from ixion.metadata.session import MetadataSession
from ixion.network import SocketServer
from ixion.replica.internal_topic import InternalTopic
from ixion.replica.manager import ReplicaManager
from ixion.security.credentials import ScramCredentials
from ixion.timer.loop_timer import LoopTimer
from ixion.timer.stall_watch import StallWatch

if TYPE_CHECKING:
    from ixion.web.server import WebServer


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How this broker is run, beside its settings."""

    allow_remote: bool = False  # listen on other addresses than the loopback
    metadata_in_memory: bool = False  # for tests: the tree ends with the broker
    owns_process: bool = False  # the broker may tune settings of the whole process
    pages: PagesAt | None = None  # metrics and health over HTTP
    files: Files = field(default_factory=Files)  # access to the disk; tests give one that fails


class Parts:
    """An attribute is there once its step has been done."""

    config: DynamicConfig
    options: Options
    paths: list[str]
    loop: asyncio.AbstractEventLoop
    timer: LoopTimer
    stalls: StallWatch
    clock_ms: Callable[[], int]
    engine: EmbeddedEngine | None = None  # None: the metadata is on ZooKeeper
    session: MetadataSession
    fresh: bool  # the tree was made by this start
    cluster_id: str
    credentials: ScramCredentials
    found: dict[str, MetaProperties | None]  # by log directory
    node_id: int
    scheduler: Scheduler
    logs: LogManager
    image: ClusterImage
    server: SocketServer
    replicas: ReplicaManager
    broker_epoch: int
    controller: Controller
    internal_topics: dict[str, InternalTopic]
    groups: LateGroups
    transactions: TransactionCoordinator
    services: Services
    dispatch: Dispatch
    web: WebServer | None
    undo: list[tuple[str, Callable[[], object]]]

    background: set[asyncio.Task[None]]  # kept, or they could be collected while they run
    on_fatal: Callable[[], None]

    def __init__(self) -> None:
        self.undo = []
        self.web = None
        self.background = set()
        self.on_fatal = lambda: None

    def metadata_file(self) -> str:
        from ixion.metadata.embedded import FILE_NAME

        return os.path.join(self.paths[0], FILE_NAME)
