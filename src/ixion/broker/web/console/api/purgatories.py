"""The purgatories: which operations wait, for which key, and what each still waits for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final, TypedDict

from ixion.broker.web.console.api.figures import in_short_turns, named
from ixion.broker.web.console.inside import Inside
from ixion.broker.web.request import HttpRequest
from ixion.timer.turns import Steps

if TYPE_CHECKING:
    from ixion.purgatory.operation import DelayedOperation
    from ixion.purgatory.purgatory import DelayedOperationPurgatory

MOST_OPERATIONS: Final = 100  # listed of each purgatory
MOST_OF_KEY: Final = 20  # of one key, so that a crowded one leaves room for others
MOST_KEYS: Final = 20_000  # looked at for those that match

# What clients wait for, in a sentence, by the purgatory's name.
MEANINGS: Final = {
    "Produce": "Appends with acks=all that wait for the replicas in sync.",
    "Fetch": "Fetches that wait for more bytes: long polls of consumers and followers.",
    "DeleteRecords": "Deletions of records that wait for every replica.",
    "ElectLeader": "Elections that wait until this broker sees the new leader.",
    "Heartbeat": "Members of classic groups: each waits for its next heartbeat.",
    "Rebalance": "Rebalances that wait for members to join or to sync.",
}


class Operation(TypedDict):
    key: str
    kind: str
    waits_for: str
    client_id: str  # of the client that waits; empty: none does, or it is not known
    address: str
    left_ms: int  # until the timeout


class Purgatory(TypedDict):
    name: str
    meaning: str
    delayed: int
    watched: int
    keys: int
    completed_at_once: int
    completed_by_event: int
    operations: list[Operation]  # those with the nearest timeouts of the keys that were looked at


class Purgatories(TypedDict):
    purgatories: list[Purgatory]
    query: str


Clients = Mapping[int, tuple[str, str]]  # by the id of the operation: client id and address


async def purgatories(inside: Inside, request: HttpRequest) -> Purgatories:
    wanted = request.query.get("q", "")[:100].lower()
    clients = await in_short_turns(waiting_clients(inside))
    now_ms = inside.timer.snapshot().now_ms
    found = [await in_short_turns(looked_at(each, wanted, now_ms, clients)) for each in inside.purgatories()]
    return Purgatories(purgatories=found, query=wanted)


def looked_at(purgatory: DelayedOperationPurgatory, wanted: str, now_ms: int, clients: Clients) -> Steps[Purgatory]:
    found: list[Operation] = []
    seen: set[int] = set()
    for number, key in enumerate(purgatory.watched_keys()):
        if len(found) >= MOST_OPERATIONS or number >= MOST_KEYS:
            break
        name = named(key)
        _, operations = purgatory.waiting_for(key, MOST_OF_KEY)
        for operation in operations:
            if id(operation) in seen:
                continue  # it waits for several keys
            row = described(operation, name, now_ms, clients)
            if wanted in f"{name} {row['kind']} {row['waits_for']} {row['client_id']} {row['address']}".lower():
                seen.add(id(operation))
                found.append(row)
        yield
    found.sort(key=lambda row: row["left_ms"])
    now = purgatory.snapshot()
    return Purgatory(
        name=now.name,
        meaning=MEANINGS.get(now.name, ""),
        delayed=now.delayed,
        watched=now.watched,
        keys=now.keys,
        completed_at_once=now.completed_at_once,
        completed_by_event=now.completed_by_check,
        operations=found,
    )


def described(operation: DelayedOperation, name: str, now_ms: int, clients: Clients) -> Operation:
    client_id, address = clients.get(id(operation), ("", ""))
    return Operation(
        key=name[:300],
        kind=operation.describe(),
        waits_for=operation.waits_for()[:500],
        client_id=client_id,
        address=address,
        left_ms=operation.deadline_ms - now_ms,
    )


def waiting_clients(inside: Inside) -> Steps[Clients]:
    """Whose request waits in which operation: the request knows how to cancel it, and that leads to the operation."""
    found: dict[int, tuple[str, str]] = {}
    for connection in inside.connections():
        request = connection.in_flight
        operation = None if request is None else getattr(request.when_gone, "__self__", None)
        if request is not None and operation is not None:
            found[id(operation)] = (connection.client_id, connection.address)
        yield
    return found
