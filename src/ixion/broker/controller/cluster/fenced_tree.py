"""The controller's way to write to the tree: every write checks that no other controller was elected since.

A write is one transaction that begins with a check of the version of `/controller_epoch`. If that check fails, another
broker is the controller (`DeposedError`), and this one must stop at once. If another operation fails, that is an
ordinary conflict.

A lost connection leaves the outcome open. Then the tree is read: a transaction is done as a whole or not at all. All of
its operations are compared, because some of the nodes may have had the wanted value before.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from ixion.broker.controller.cluster.leadership import Leadership, leadership_of, state_of
from ixion.broker.metadata import paths
from ixion.broker.metadata.content import CorruptNodeError
from ixion.broker.metadata.errors import (
    BadVersionError,
    ConnectionLostError,
    MetadataError,
    NodeExistsError,
    NoNodeError,
)
from ixion.broker.metadata.node import ANY_VERSION, Check, Create, Delete, Operation, Result, Set
from ixion.broker.metadata.session import MetadataSession
from ixion.broker.metadata.topic_node import decode_partition_state, encode_partition_state
from ixion.language.model.topic_partition import TopicPartition
from ixion.timer.turns import Pauses

IN_FLIGHT: Final = 200  # transactions that are sent before the first is answered
CHUNK_BYTES: Final = 256 * 1024  # of data in one transaction; ZooKeeper takes 1 MiB
CHUNK_OPERATIONS: Final = 500
OPERATION_BYTES: Final = 64  # of an operation besides its path and data, rounded up
MAX_NODE: Final = (1 << 20) - 4_096  # bytes of data that fit into one request to ZooKeeper, with path and check


class DeposedError(Exception):
    """Another broker is the controller, or this one has resigned: nothing was written."""


class FencedTree:
    def __init__(self, session: MetadataSession, controller_epoch: int, epoch_version: int) -> None:
        """`epoch_version`: the version of `/controller_epoch` after the election."""
        self.session = session
        self.controller_epoch = controller_epoch
        self.epoch_version = epoch_version
        self._check = Check(paths.CONTROLLER_EPOCH, epoch_version)
        self._closed = False

    def close(self) -> None:
        """Refuse all further writes, because the controller has resigned."""
        self._closed = True

    async def write(self, operations: Sequence[Operation]) -> list[Result]:
        """Do all of the operations or none."""
        while True:
            if self._closed:
                raise DeposedError("this broker has resigned as the controller")
            try:
                results = await self.session.multi([self._check, *operations])
            except ConnectionLostError:
                if await self._are_done(operations):
                    return [await self._result_of(operation) for operation in operations]
                continue
            except MetadataError as error:
                if error.operation == 0:
                    raise DeposedError("another broker was elected as the controller") from error
                error.operation -= 1
                raise
            return results[1:]

    async def write_each(self, writes: Sequence[Sequence[Operation]]) -> list[list[Result] | MetadataError]:
        """Write each in its own transaction, with many in flight. Returns the outcome of each."""
        outcomes: list[list[Result] | MetadataError] = []
        for start in range(0, len(writes), IN_FLIGHT):
            some = [self.write(operations) for operations in writes[start : start + IN_FLIGHT]]
            for outcome in await asyncio.gather(*some, return_exceptions=True):
                if isinstance(outcome, BaseException) and not isinstance(outcome, MetadataError):
                    raise outcome
                outcomes.append(outcome)
        return outcomes

    async def create_all(self, nodes: Sequence[Create]) -> None:
        """Create nodes, parents first, in few transactions. Existing nodes stay."""
        for chunk in chunks(nodes):
            try:
                await self.write(chunk)
            except NodeExistsError:
                for outcome in await self.write_each([[node] for node in chunk]):
                    if isinstance(outcome, MetadataError) and not isinstance(outcome, NodeExistsError):
                        raise outcome from None

    async def delete_all(self, doomed: Sequence[str]) -> None:
        """Delete nodes in this order. Missing nodes are skipped."""
        for chunk in chunks([Delete(path) for path in doomed]):
            try:
                await self.write(chunk)
            except NoNodeError:
                for operation in chunk:
                    try:
                        await self.write([operation])
                    except NoNodeError:
                        continue

    async def write_states(self, states: Mapping[TopicPartition, Leadership]) -> dict[TopicPartition, Leadership]:
        """Write the states of partitions at their versions. Returns those that were written.

        A partition whose node has another version is left out: read it (`read_states`) and decide again.
        """
        writes: list[list[Operation]] = []
        pauses = Pauses()
        for (name, number), wanted in states.items():
            await pauses.pause()
            data = encode_partition_state(state_of(wanted, self.controller_epoch))
            writes.append([Set(paths.partition_state(name, number), data, wanted.partition_epoch)])
        written: dict[TopicPartition, Leadership] = {}
        for (key, wanted), outcome in zip(states.items(), await self.write_each(writes), strict=True):
            await pauses.pause()
            if isinstance(outcome, (BadVersionError, NoNodeError)):
                continue
            if isinstance(outcome, MetadataError):
                raise outcome
            written[key] = replace(
                wanted, partition_epoch=wanted.partition_epoch + 1, controller_epoch=self.controller_epoch
            )
        return written

    async def read_states(self, keys: Sequence[TopicPartition]) -> dict[TopicPartition, Leadership | CorruptNodeError]:
        """The states that the tree has; DeposedError if a newer controller wrote one of them."""
        found: dict[TopicPartition, Leadership | CorruptNodeError] = {}
        shared: dict[tuple[tuple[int, int], ...], Mapping[int, int]] = {}  # most states have the epochs of another one

        async def read(key: TopicPartition) -> None:
            try:
                node = await self.session.get(paths.partition_state(*key))
                state = decode_partition_state(*key, node.data)
                known = leadership_of(state, node.stat.version, node.stat.modified_zxid)
                epochs = shared.setdefault(tuple(known.epochs.items()), known.epochs)
                found[key] = replace(known, epochs=epochs)
            except NoNodeError:
                return
            except CorruptNodeError as error:
                found[key] = error

        for start in range(0, len(keys), IN_FLIGHT):
            await asyncio.gather(*[read(key) for key in keys[start : start + IN_FLIGHT]])
        for state in found.values():
            if isinstance(state, Leadership) and state.controller_epoch > self.controller_epoch:
                raise DeposedError(f"a controller of epoch {state.controller_epoch} has written to the tree")
        return found

    async def _are_done(self, operations: Sequence[Operation]) -> bool:
        for operation in operations:
            if not await self._is_done(operation):
                return False
        return True

    async def _is_done(self, operation: Operation) -> bool:
        try:
            node = await self.session.get(operation.path)
        except NoNodeError:
            return isinstance(operation, Delete)
        if isinstance(operation, Set):
            if operation.version == ANY_VERSION:
                return node.data == operation.data
            return node.stat.version == operation.version + 1 and node.data == operation.data
        return isinstance(operation, Create) and node.data == operation.data

    async def _result_of(self, operation: Operation) -> Result:
        if isinstance(operation, Set):
            return await self.session.exists(operation.path)
        return operation.path if isinstance(operation, Create) else None


def chunks(operations: Sequence[Operation]) -> list[list[Operation]]:
    """The operations in their order, in groups that fit into one transaction each."""
    groups: list[list[Operation]] = []
    room = 0
    for operation in operations:
        size = OPERATION_BYTES + len(operation.path) + len(getattr(operation, "data", b""))
        if not groups or size > room or len(groups[-1]) >= CHUNK_OPERATIONS:
            groups.append([])
            room = CHUNK_BYTES
        groups[-1].append(operation)
        room -= size
    return groups
