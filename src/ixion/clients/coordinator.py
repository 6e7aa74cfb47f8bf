"""Finds the broker that looks after a group or a transactional id."""

from __future__ import annotations

from typing import Final

from ixion.clients.cluster import Cluster
from ixion.clients.connection import Connection
from ixion.clients.deadline import Deadline
from ixion.clients.faults import check, only
from ixion.protocol.messages.k10_find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from ixion.protocol.registry import ApiKey

GROUP: Final = 0
TRANSACTION: Final = 1
LAST_OF_ONE: Final = 3  # later versions ask for several keys at once


def group_coordinator(cluster: Cluster, group: str, deadline: Deadline) -> Connection:
    return coordinator(cluster, GROUP, group, f"the coordinator of group {group!r}", deadline)


def transaction_coordinator(cluster: Cluster, transactional_id: str, deadline: Deadline) -> Connection:
    about = f"the coordinator of transactional id {transactional_id!r}"
    return coordinator(cluster, TRANSACTION, transactional_id, about, deadline)


def coordinator(cluster: Cluster, kind: int, key: str, about: str, deadline: Deadline) -> Connection:
    broker = cluster.any(deadline)
    version = broker.version(ApiKey.FIND_COORDINATOR)
    if version > LAST_OF_ONE:
        request = FindCoordinatorRequest(key_type=kind, coordinator_keys=(key,))
    else:
        request = FindCoordinatorRequest(key=key, key_type=kind)
    answer = broker.call(ApiKey.FIND_COORDINATOR, request, FindCoordinatorResponse, deadline, version)
    if version > LAST_OF_ONE:
        found = only(answer.coordinators, about)
        check(found.error_code, found.error_message, about)
        node_id = found.node_id
    else:
        check(answer.error_code, answer.error_message, about)
        node_id = answer.node_id
    cluster.nodes(deadline)
    return cluster.node(node_id, deadline)
