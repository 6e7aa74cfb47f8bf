"""The transaction coordinator, made when it is first needed.

Without it a start imports 17 modules less, and most clusters never see a transaction. It is needed as soon as this
broker leads a partition of `__transaction_state`, or when a client asks for a producer id or about a transaction.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING

from ixion.broker.replica.internal_topic import TRANSACTION_STATE
from ixion.timer.turns import Steps

if TYPE_CHECKING:
    from ixion.broker.coordinators.txn.coordinator import TransactionCoordinator
    from ixion.broker.startup.parts import Parts


class LateTransactions:
    def __init__(self, parts: Parts) -> None:
        self._parts = parts
        self._made: TransactionCoordinator | None = None
        self._stopped = False

    @property
    def made(self) -> TransactionCoordinator | None:
        """None: not needed yet."""
        return self._made

    def import_code(self) -> None:
        """Import what `get` and a first transactional write need. On a worker thread."""
        import_module("ixion.broker.coordinators.txn.build")
        import_module("ixion.broker.apis.first_write")

    def prepare_to_lead(self, topic: str) -> None:
        """As `import_code`, if this broker is about to lead a partition of `__transaction_state`."""
        if topic == TRANSACTION_STATE:
            self.import_code()

    def get(self) -> TransactionCoordinator:
        made = self._made
        if made is None:
            from ixion.broker.coordinators.txn.build import transaction_coordinator

            parts = self._parts
            made = self._made = transaction_coordinator(
                node_id=parts.node_id,
                log=parts.internal_topics[TRANSACTION_STATE],
                session=lambda: parts.session,
                image=parts.image,
                replicas=parts.replicas,
                offsets_decided=parts.groups.on_transaction_marker,
                config=parts.config,
                timer=parts.timer,
                clock_ms=parts.clock_ms,
                loop=parts.loop,
                channels=parts.to_brokers,
            )
            if not self._stopped:
                made.start()
        return made

    def follow(self, topic: str, partition: int, leader_epoch: int) -> None:
        if topic == TRANSACTION_STATE:
            if leader_epoch >= 0:
                self.get().on_elected(partition, leader_epoch)
            elif self._made is not None:
                self._made.on_resigned(partition)

    def count_states(self) -> Steps[Mapping[str, int]]:
        if self._made is None:
            return {}
        return (yield from self._made.count_states())

    def stop(self) -> None:
        self._stopped = True
        if self._made is not None:
            self._made.stop()
