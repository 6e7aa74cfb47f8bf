"""The parts of the broker that handlers may use. Each handler takes the few it needs, once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ixion.broker.controller.controller import Controller
from ixion.broker.controller.planning import NewTopic
from ixion.broker.controller.topics import TopicOutcome
from ixion.broker.metadata.image import ClusterImage
from ixion.broker.quota.addresses import AddressRates
from ixion.broker.quota.mutations import Mutations
from ixion.broker.quota.quotas import Quotas
from ixion.broker.replica.control import Control
from ixion.broker.replica.internal_topic import InternalTopic
from ixion.broker.replica.manager import ReplicaManager
from ixion.broker.security.credentials import ScramCredentials
from ixion.config.dynamic import DynamicConfig
from ixion.timer.timer import Timer

if TYPE_CHECKING:
    from ixion.broker.acl.authorizer import Authorizer
    from ixion.broker.controller.acls import Acls
    from ixion.broker.controller.cluster.controller import ClusterController
    from ixion.broker.controller.tokens import TokenManager
    from ixion.broker.coordinators.group.coordinator import GroupCoordinator
    from ixion.broker.coordinators.share.coordinator import ShareCoordinator
    from ixion.broker.coordinators.share.router import StateRouter
    from ixion.broker.coordinators.txn.coordinator import TransactionCoordinator
    from ixion.broker.share.manager import ShareManager

CreateTopics = Callable[[list[NewTopic]], Awaitable[list[TopicOutcome]]]


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class Services:
    """One for each broker."""

    node_id: int
    cluster_id: str
    config: DynamicConfig
    image: ClusterImage
    replicas: ReplicaManager
    control: Control
    controller: Controller | ClusterController
    create_topics: CreateTopics  # on the broker that is the controller
    timer: Timer
    internal_topics: dict[str, InternalTopic]  # by name
    make_groups: Callable[[], GroupCoordinator]
    make_transactions: Callable[[], TransactionCoordinator]
    make_shares: Callable[[], ShareCoordinator]
    make_share_states: Callable[[], StateRouter]
    make_share_leaders: Callable[[], ShareManager]
    credentials: ScramCredentials
    tokens: TokenManager | None  # None: delegation.token.secret.key is not set
    quotas: Quotas
    mutations: Mutations
    address_rates: AddressRates
    authorizer: Authorizer | None  # None: every client may do everything
    acls: Acls | None  # with an authorizer: its rules
    clock_ms: Callable[[], int]
    loop: asyncio.AbstractEventLoop

    @property
    def groups(self) -> GroupCoordinator:
        """Made on first use: its code is a third of all that a broker imports."""
        return self.make_groups()

    @property
    def transactions(self) -> TransactionCoordinator:
        """Made on first use, like `groups`."""
        return self.make_transactions()

    @property
    def shares(self) -> ShareCoordinator:
        """The share coordinator of this broker; made on first use."""
        return self.make_shares()

    @property
    def share_persister(self) -> StateRouter:
        """The stored state of share partitions, whichever broker has it; made on first use."""
        return self.make_share_states()

    @property
    def share_leaders(self) -> ShareManager:
        """The share partitions that this broker leads; made on first use."""
        return self.make_share_leaders()
