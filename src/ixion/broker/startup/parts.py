"""The parts of a broker, as the start-up steps make them one after the other."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, NamedTuple

from ixion.broker.apis.dispatch import Dispatch
from ixion.broker.apis.services import Services
from ixion.broker.controller.controller import Controller
from ixion.broker.log.files import Files
from ixion.broker.log.kept import boot_id
from ixion.broker.log.manager import LogManager
from ixion.broker.log.meta_properties import MetaProperties
from ixion.broker.metadata.image import ClusterImage
from ixion.broker.metadata.on_loop import EmbeddedEngine
from ixion.broker.metadata.placement_node import Placement
from ixion.broker.metadata.session import MetadataSession
from ixion.broker.network import SocketServer
from ixion.broker.quota.addresses import AddressRates
from ixion.broker.quota.mutations import Mutations
from ixion.broker.quota.quotas import Quotas
from ixion.broker.replica.control import Control
from ixion.broker.replica.internal_topic import InternalTopic
from ixion.broker.replica.manager import ReplicaManager
from ixion.broker.schedules.schedules import Schedules
from ixion.broker.security.credentials import ScramCredentials
from ixion.broker.security.tokens import Tokens
from ixion.broker.startup.late_groups import LateGroups
from ixion.broker.startup.late_share_leaders import LateShareLeaders
from ixion.broker.startup.late_shares import LateShares
from ixion.broker.startup.late_transactions import LateTransactions
from ixion.broker.startup.pages import PagesAt
from ixion.broker.startup.scheduler import Scheduler
from ixion.config.dynamic import DynamicConfig
from ixion.language.model.pools import MakePool, threads
from ixion.timer.loop_timer import LoopTimer
from ixion.timer.stall_watch import StallWatch

if TYPE_CHECKING:
    from ixion.broker.acl.authorizer import Authorizer
    from ixion.broker.controller.acls import Acls
    from ixion.broker.controller.cluster.controller import ClusterController
    from ixion.broker.controller.tokens import TokenManager
    from ixion.broker.replica.broker_channels import BrokerChannels
    from ixion.broker.replica.controller_channel import ControllerChannel
    from ixion.broker.replica.fetchers import FetcherPool
    from ixion.broker.schedules.targets import Targets
    from ixion.broker.startup.kept_logs import KeptLogs
    from ixion.broker.startup.renewing import Renewal
    from ixion.broker.web.server import WebServer


class Options(NamedTuple):
    """How this broker is run, besides its settings."""

    allow_remote: bool = False  # listen on other addresses than the loopback
    metadata_file: str | None = None  # for tests: one in memory
    owns_process: bool = False  # the broker may tune settings of the whole process
    pages: PagesAt | None = None  # metrics and health over HTTP
    files: Files = Files()  # access to the disk; tests give one that fails
    make_pool: MakePool = threads  # makes the thread pools for blocking work
    boot_id: Callable[[], str] = boot_id  # another one after every boot of the machine
    # Opens a session with this timeout in ms on a tree that brokers of this process share.
    open_session: Callable[[int], Awaitable[MetadataSession]] | None = None


class Parts:
    """An attribute is set once its step is done."""

    doing: str = ""  # the present step of the start, or the part that is being stopped
    config: DynamicConfig
    options: Options
    paths: list[str]
    loop: asyncio.AbstractEventLoop
    timer: LoopTimer
    stalls: StallWatch
    clock_ms: Callable[[], int]
    engine: EmbeddedEngine | None = None  # None: the tree is on ZooKeeper, or shared with other brokers
    session: MetadataSession
    open_session: Callable[[], Awaitable[MetadataSession]]  # opens another session, if a session can be replaced
    renewal: Renewal | None = None
    fresh: bool  # the tree was made by this start
    last_notice: str  # the last notification of changed settings before this start read them
    cluster_id: str
    credentials: ScramCredentials
    found: dict[str, MetaProperties | None]  # by log directory
    node_id: int
    scheduler: Scheduler
    logs: LogManager
    kept: KeptLogs | None = None  # None: this broker is alone
    image: ClusterImage
    server: SocketServer
    replicas: ReplicaManager
    control: Control
    to_controller: ControllerChannel | None = None  # None: this broker is alone
    to_brokers: BrokerChannels | None = None
    fetchers: FetcherPool | None = None
    schedules: Schedules
    targets: Targets | None = None  # of schedule topics; None: there are none
    close_targets: Callable[[], None] | None = None
    broker_epoch: int
    registered_ms: int | None = None  # since when; None: not registered
    leaving: bool = False  # leaders are being moved away: this broker stops
    controller: Controller | ClusterController
    placement: Placement  # of groups and transactional ids
    internal_topics: dict[str, InternalTopic]
    groups: LateGroups
    transactions: LateTransactions
    shares: LateShares
    share_leaders: LateShareLeaders
    tokens: Tokens
    token_manager: TokenManager | None = None  # None: delegation.token.secret.key is not set
    quotas: Quotas
    mutations: Mutations
    address_rates: AddressRates
    authorizer: Authorizer | None = None
    acls: Acls | None = None
    services: Services
    dispatch: Dispatch
    web: WebServer | None
    undo: list[tuple[str, Callable[[], object]]]

    on_new_session: list[Callable[[MetadataSession], Awaitable[None]]]  # called when a session has replaced another
    background: set[asyncio.Task[None]]  # kept, so that running tasks are not garbage-collected
    on_fatal: Callable[[], None]

    def __init__(self) -> None:
        self.undo = []
        self.web = None
        self.on_new_session = []
        self.background = set()
        self.on_fatal = lambda: None

    @property
    def sole_controller(self) -> Controller:
        """The controller of a broker that is alone, on the embedded tree."""
        assert isinstance(self.controller, Controller)
        return self.controller

    def metadata_file(self) -> str:
        from ixion.broker.metadata.embedded import FILE_NAME

        return os.path.join(self.paths[0], FILE_NAME)
