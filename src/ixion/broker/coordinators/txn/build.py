"""Builds the transaction coordinator of a broker."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from ixion.broker.coordinators.txn.coordinator import TransactionCoordinator
from ixion.broker.coordinators.txn.local_markers import LocalMarkers, OffsetsDecided
from ixion.broker.coordinators.txn.producer_ids import ProducerIds, as_task, claim_block
from ixion.broker.metadata.image import ClusterImage
from ixion.broker.metadata.session import MetadataSession
from ixion.broker.replica.coordinator_log import CoordinatorLog
from ixion.broker.replica.manager import ReplicaManager
from ixion.config.dynamic import DynamicConfig
from ixion.language.model.errors import ErrorCode
from ixion.timer.timer import Timer

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop

    from ixion.broker.coordinators.txn.remote_verification import RemoteVerification
    from ixion.broker.coordinators.txn.spread_markers import SpreadMarkers
    from ixion.broker.replica.broker_channels import BrokerChannels

FEATURE: Final = "transaction.version"
MADE_UP_FROM: Final = 2**62  # a million new producers a second reach this after 146,000 years


def transaction_coordinator(
    *,
    node_id: int,
    log: CoordinatorLog,
    session: Callable[[], MetadataSession],
    image: ClusterImage,
    replicas: ReplicaManager,
    offsets_decided: OffsetsDecided,
    config: DynamicConfig,
    timer: Timer,
    clock_ms: Callable[[], int],
    loop: AbstractEventLoop,
    channels: BrokerChannels | None = None,
) -> TransactionCoordinator:
    """`channels` lead to other brokers; None for a broker that is alone."""
    local = LocalMarkers(replicas, clock_ms, offsets_decided)
    spread: SpreadMarkers | None = None
    elsewhere: RemoteVerification | None = None
    if channels is not None:
        from ixion.broker.coordinators.txn.remote_verification import RemoteVerification
        from ixion.broker.coordinators.txn.spread_markers import SpreadMarkers

        spread = SpreadMarkers(local, node_id, image, channels)
        elsewhere = RemoteVerification(node_id, image, log, replicas, channels)
    coordinator = TransactionCoordinator(
        log,
        producer_ids=ProducerIds(
            lambda lowest: claim_block(session(), node_id, lowest),
            as_task(loop),
            lambda: lowest_free(replicas, coordinator),
        ),
        markers=local,
        spread_markers=spread,
        elsewhere=elsewhere,
        exists=lambda partition: image.partition(*partition) is not None or not image.complete,
        version=lambda: image.features.get(FEATURE, 0),
        timer=timer,
        clock_ms=clock_ms,
        config=config,
    )
    return coordinator


def lowest_free(replicas: ReplicaManager, coordinator: TransactionCoordinator) -> int:
    """One more than any producer id in the logs: a log directory may be used with a new metadata tree.

    Any client can invent a producer id. One near the maximum would leave no free ids, so those are ignored.
    """
    known = [number for partition in replicas.partitions.values() for number in partition.log.producers.producers]
    listed = coordinator.list()
    if not isinstance(listed, ErrorCode):
        known += [each.now.producer_id for each in listed]
    return max((number for number in known if number < MADE_UP_FROM), default=-1) + 1
