"""Which kind of member a consumer is in its group: of a classic group, or of a consumer group (KIP-848).

A member of a share group (KIP-932) is in `core.share`: it has no positions and commits nothing.
"""

from __future__ import annotations

import re

from ixion.clients.core.client import Client
from ixion.clients.core.consumer.coordinator import Coordinator
from ixion.clients.core.consumer.member import Member
from ixion.clients.core.consumer.settings import ConsumerSettings


def new_member(client: Client, coordinator: Coordinator, settings: ConsumerSettings) -> Member:
    """Imports only the kind that is needed: the messages are a sixth of the import time."""
    rebalance_s = settings.max_poll_interval_ms / 1000
    if settings.group_protocol == "consumer":
        from ixion.clients.core.consumer.served import ServedMember

        return ServedMember(
            client,
            coordinator,
            instance_id=settings.group_instance_id,
            rebalance_s=rebalance_s,
            assignor=settings.group_remote_assignor,
            rack=settings.client_rack or None,
        )
    from ixion.clients.core.consumer.classic import ClassicMember

    return ClassicMember(
        client,
        coordinator,
        instance_id=settings.group_instance_id,
        strategies=settings.partition_assignment_strategy,
        session_s=settings.session_timeout_ms / 1000,
        rebalance_s=rebalance_s,
        heartbeat_s=settings.heartbeat_interval_ms / 1000,
        rack=settings.client_rack,
    )


def check_pattern(pattern: str) -> None:
    """ValueError for a pattern that does not compile. (The coordinator may still refuse one that does.)"""
    try:
        re.compile(pattern)
    except re.error as error:
        raise ValueError(f"{pattern!r} is not a valid pattern: {error}") from None
