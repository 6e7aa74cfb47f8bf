"""DescribeClientQuotas, 0 to 1: the quotas whose entity matches the filter (KIP-546).

A strict filter matches entities with exactly its types; otherwise an entity may have more. We refuse the filters that
Kafka refuses: an entity type that is empty, unknown or repeated; a missing or unexpected match string; and addresses
together with users or client ids.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, cast

from ixion.broker.acl.numbers import DESCRIBE_CONFIGS
from ixion.broker.apis.call import Call, Handle
from ixion.broker.apis.guards.shapes import NO_CLUSTER, refused_with
from ixion.broker.apis.repeats import twice
from ixion.broker.apis.services import Services
from ixion.broker.quota.limits import CONNECTIONS, Entity
from ixion.broker.quota.limits import DEFAULT as EVERY
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.protocol.messages.k48_describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
    EntityData,
    EntryData,
    ValueData,
)
from ixion.timer.turns import Steps

REPEATS: Final = {"components": twice("entity_type")}
RIGHTS: Final = refused_with(
    DESCRIBE_CONFIGS,
    DescribeClientQuotasResponse(error_code=NO_CLUSTER, error_message=NO_CLUSTER.explanation, entries=None),
)

USER: Final = "user"
CLIENT_ID: Final = "client-id"
IP: Final = "ip"
ENTITY_TYPES: Final = (USER, CLIENT_ID, IP)
EXACT: Final = 0
DEFAULT: Final = 1
SPECIFIED: Final = 2


def make(services: Services) -> Handle:
    limits = services.quotas.limits
    addresses = services.address_rates.bounds

    def handle(call: Call) -> Steps[DescribeClientQuotasResponse]:
        request = cast(DescribeClientQuotasRequest, call.body)
        try:
            check(request.components)
        except KafkaError as error:
            return DescribeClientQuotasResponse(error_code=error.code, error_message=error.message, entries=None)
        entries: list[EntryData] = []
        of_clients = [(parts_of(entity), quotas) for entity, quotas in limits.entities.items()]
        of_addresses = [({IP: address}, {CONNECTIONS: bound}) for address, bound in addresses.items()]
        for parts, quotas in [*of_clients, *of_addresses]:
            if matches(request, parts):
                entries.append(
                    EntryData(
                        entity=tuple(
                            EntityData(entity_type=kind, entity_name=None if name == EVERY else name)
                            for kind, name in parts.items()
                        ),
                        values=tuple(ValueData(key=key, value=value) for key, value in quotas.items()),
                    )
                )
            yield
        return DescribeClientQuotasResponse(error_code=ErrorCode.NONE, error_message="", entries=tuple(entries))

    return handle


def parts_of(entity: Entity) -> dict[str, str]:
    named = {USER: entity.user, CLIENT_ID: entity.client_id}
    return {kind: name for kind, name in named.items() if name is not None}


def matches(request: DescribeClientQuotasRequest, parts: Mapping[str, str]) -> bool:
    if request.strict and len(parts) != len(request.components):
        return False
    for component in request.components:
        name = parts.get(component.entity_type)
        if name is None:
            return False
        if component.match_type == EXACT and name != component.match:
            return False
        if component.match_type == DEFAULT and name != EVERY:
            return False
    return True


def check(components: tuple[ComponentData, ...]) -> None:
    seen: set[str] = set()
    for component in components:
        kind = component.entity_type
        if not kind:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "an entity type is empty")
        if kind in seen:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"entity type '{kind}' is in the filter more than once")
        if kind not in ENTITY_TYPES:
            text = f"'{kind}' is not an entity type; these are {', '.join(ENTITY_TYPES)}"
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, text)
        if component.match_type not in (EXACT, DEFAULT, SPECIFIED):
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"match type {component.match_type} is unknown")
        if (component.match is None) == (component.match_type == EXACT):
            raise KafkaError(
                ErrorCode.INVALID_REQUEST, f"match type {EXACT} needs a match string, and the others must have none"
            )
        seen.add(kind)
    if IP in seen and len(seen) > 1:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"'{IP}' cannot be combined with other entity types")
