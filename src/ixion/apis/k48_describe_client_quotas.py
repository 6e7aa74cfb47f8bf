"""DescribeClientQuotas, 0 to 1: an empty list, as no quotas are kept (see AlterClientQuotas).

A filter that Kafka refuses is refused: an entity type that is empty, unknown or named twice, a match string where there
must be none or the other way round, and addresses together with users or client ids.
"""

from __future__ import annotations

from typing import Final, cast

from ixion.apis.call import Call, Handle
from ixion.apis.services import Services
from ixion.model.errors import ErrorCode, KafkaError
from ixion.protocol.messages.k48_describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)

IP: Final = "ip"
ENTITY_TYPES: Final = ("user", "client-id", IP)
EXACT: Final = 0
DEFAULT: Final = 1
SPECIFIED: Final = 2


def make(_services: Services) -> Handle:
    def handle(call: Call) -> DescribeClientQuotasResponse:
        request = cast(DescribeClientQuotasRequest, call.body)
        try:
            check(request.components)
        except KafkaError as error:
            return DescribeClientQuotasResponse(
                throttle_time_ms=0, error_code=error.code, error_message=error.message, entries=None
            )
        return DescribeClientQuotasResponse(throttle_time_ms=0, error_code=ErrorCode.NONE, error_message="", entries=())

    return handle


def check(components: tuple[ComponentData, ...]) -> None:
    seen: set[str] = set()
    for component in components:
        kind = component.entity_type
        if not kind:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "an entity type is empty")
        if kind in seen:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"entity type '{kind}' is in the filter more than once")
        if kind not in ENTITY_TYPES:
            raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, f"'{kind}' is no entity type: {', '.join(ENTITY_TYPES)}")
        if component.match_type not in (EXACT, DEFAULT, SPECIFIED):
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"match type {component.match_type} is unknown")
        if (component.match is None) == (component.match_type == EXACT):
            raise KafkaError(
                ErrorCode.INVALID_REQUEST, f"match type {EXACT} needs a match string, and the others must have none"
            )
        seen.add(kind)
    if IP in seen and len(seen) > 1:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"'{IP}' cannot be combined with other entity types")
