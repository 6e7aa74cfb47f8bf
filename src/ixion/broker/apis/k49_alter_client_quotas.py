"""AlterClientQuotas, 0 to 1: set and remove the quotas of users, client ids, and users with client ids (KIP-546).

Each entry is changed as a whole or not at all. producer_byte_rate and consumer_byte_rate are whole bytes per second,
request_percentage a percentage of one core, controller_mutation_rate partitions created and deleted per second
(KIP-599). An address may only have connection_creation_rate, whole connections per second (KIP-612). A host name, which
Kafka would resolve, is refused: use an IP address.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from ipaddress import ip_address
from typing import Final, cast
from urllib.parse import quote

from ixion.broker.acl.numbers import ALTER_CONFIGS
from ixion.broker.apis.call import Call, Handle
from ixion.broker.apis.controller_calls import translated
from ixion.broker.apis.guards.shapes import NO_CLUSTER, in_cluster
from ixion.broker.apis.k48_describe_client_quotas import CLIENT_ID, IP, USER
from ixion.broker.apis.repeats import as_sent
from ixion.broker.apis.services import Services
from ixion.broker.metadata import paths
from ixion.broker.quota.limits import CONNECTIONS, KINDS, MUTATION, REQUEST
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.protocol.messages.k49_alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    EntityData,
    EntryData,
    OpData,
    ResponseEntryData,
)
from ixion.language.protocol.notation import Struct
from ixion.timer.turns import Steps, map_steps

REPEATS: Final = {"entries": as_sent(entity=as_sent(), ops=as_sent())}

MOST_ENTRIES: Final = 1_000  # in one request: each is a change of the metadata
MOST_OPS: Final = 100  # per entry; there are fewer quotas
FRACTIONS: Final = frozenset({REQUEST, MUTATION})


def make(services: Services) -> Handle:
    configs = services.controller.configs

    async def handle(call: Call) -> AlterClientQuotasResponse:
        request = cast(AlterClientQuotasRequest, call.body)
        many = len(request.entries) > MOST_ENTRIES
        results = []
        for entry in request.entries:
            code, message = ErrorCode.NONE, None
            try:
                if many:
                    raise invalid(f"{len(request.entries)} entries in one request; {MOST_ENTRIES} are allowed")
                kind, entity = place_of(entry.entity)
                check(entry, (CONNECTIONS,) if kind == "ips" else KINDS)
                change = partial(changed, ops=entry.ops)
                await translated(configs.alter(kind, entity, change, request.validate_only))
            except KafkaError as error:
                code, message = error.code, error.message
            results.append(ResponseEntryData(error_code=code, error_message=message, entity=entry.entity))
        return AlterClientQuotasResponse(entries=tuple(results))

    return handle


def place_of(entity: tuple[EntityData, ...]) -> tuple[str, str]:
    """Kind and path of the entity in the tree. A name of None is the default of its type."""
    nodes: dict[str, str] = {}
    for part in entity:
        if not part.entity_type:
            raise invalid("an entity type is empty")
        if part.entity_type in nodes:
            raise invalid(f"entity type '{part.entity_type}' is named more than once")
        if part.entity_name == "":
            raise invalid(f"the name of a {part.entity_type} is empty")
        nodes[part.entity_type] = (
            paths.DEFAULT_ENTITY if part.entity_name is None else paths.sanitized(part.entity_name)
        )
    if not nodes:
        raise invalid("an entry needs an entity")
    if IP in nodes:
        if len(nodes) > 1:
            raise invalid(f"'{IP}' cannot be combined with other entity types")
        return "ips", address_of(entity[0].entity_name)
    others = [kind for kind in nodes if kind not in (USER, CLIENT_ID)]
    if others:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"'{others[0]}' is not an entity type")
    if USER not in nodes:
        return "clients", nodes[CLIENT_ID]
    return "users", f"{nodes[USER]}/clients/{nodes[CLIENT_ID]}" if CLIENT_ID in nodes else nodes[USER]


def address_of(name: str | None) -> str:
    """The node of an address, in the form that sockets return."""
    if name is None:
        return paths.DEFAULT_ENTITY
    try:
        return quote(str(ip_address(name)), safe=".")
    except ValueError:
        raise invalid(f"'{name}' is not an IP address") from None


def check(entry: EntryData, known: Sequence[str]) -> None:
    if len(entry.ops) > MOST_OPS:
        raise invalid(f"{len(entry.ops)} changes of one entity; {MOST_OPS} are allowed")
    for op in entry.ops:
        if op.key not in known:
            raise invalid(f"'{op.key}' is not a quota of this entity; these are {', '.join(known)}")
        if not op.remove:
            if not 0 < op.value < float("inf"):
                raise invalid(f"{op.key} must be more than 0, not {op.value}")
            if op.key not in FRACTIONS and op.value != int(op.value):
                raise invalid(f"{op.key} must be a whole number, not {op.value}")


def changed(config: dict[str, str], ops: tuple[OpData, ...]) -> Mapping[str, str]:
    for op in ops:
        if op.remove:
            config.pop(op.key, None)
        else:
            config[op.key] = str(op.value) if op.key in FRACTIONS else str(int(op.value))
    return config


def invalid(text: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, text)


def _refused_quotas(request: AlterClientQuotasRequest, _version: int) -> Steps[Struct]:
    lines = yield from map_steps(
        lambda entry: ResponseEntryData(
            error_code=NO_CLUSTER, error_message=NO_CLUSTER.explanation, entity=entry.entity
        ),
        request.entries,
    )
    return AlterClientQuotasResponse(entries=tuple(lines))


RIGHTS: Final = in_cluster(ALTER_CONFIGS, _refused_quotas)
