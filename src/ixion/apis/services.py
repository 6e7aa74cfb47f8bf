"""The parts of the broker that handlers may use. Each handler takes the few it needs, once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ixion.config.dynamic import DynamicConfig
from ixion.controller.controller import Controller
from ixion.controller.planning import NewTopic
from ixion.controller.topics import TopicOutcome
from ixion.metadata.image import ClusterImage
from ixion.quota.addresses import AddressRates
from ixion.quota.mutations import Mutations
from ixion.quota.quotas import Quotas
from ixion.replica.control import Control
from ixion.replica.internal_topic import InternalTopic
from ixion.replica.manager import ReplicaManager
from ixion.security.credentials import ScramCredentials
from ixion.timer.timer import Timer

if TYPE_CHECKING:
    from ixion.acl.authorizer import Authorizer
    from ixion.controller.acls import Acls
    from ixion.controller.cluster.controller import ClusterController
    from ixion.controller.tokens import TokenManager
    from ixion.coordinators.group.coordinator import GroupCoordinator
    from ixion.coordinators.txn.coordinator import TransactionCoordinator

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
