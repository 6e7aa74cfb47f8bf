from __future__ import annotations

from ixion.language.model.errors import ErrorCode
from ixion.language.model.ids import ZERO_ID
from ixion.language.protocol.messages.k18_api_versions import ApiVersionsRequest, ApiVersionsResponse
from ixion.language.protocol.messages.k71_get_telemetry_subscriptions import (
    GetTelemetrySubscriptionsRequest,
    GetTelemetrySubscriptionsResponse,
)
from ixion.language.protocol.registry import ApiKey
from tests.apis.asking import Asking


def ask(asking: Asking, client: bytes) -> GetTelemetrySubscriptionsResponse:
    return asking.ask(GetTelemetrySubscriptionsRequest(client_instance_id=client), GetTelemetrySubscriptionsResponse)


def test_nothing_is_wanted(asking: Asking) -> None:
    first, second = ask(asking, ZERO_ID), ask(asking, ZERO_ID)
    assert ZERO_ID not in (first.client_instance_id, second.client_instance_id)
    assert first.client_instance_id != second.client_instance_id
    again = ask(asking, first.client_instance_id)
    assert again == first
    assert (again.error_code, again.requested_metrics, again.push_interval_ms) == (ErrorCode.NONE, (), 300_000)


def test_clients_are_not_invited(asking: Asking) -> None:
    request = ApiVersionsRequest(client_software_name="c", client_software_version="1")
    listed = {each.api_key for each in asking.ask(request, ApiVersionsResponse).api_keys}
    assert listed.isdisjoint({ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY})
    assert ApiKey.DESCRIBE_ACLS in listed
