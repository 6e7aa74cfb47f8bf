from __future__ import annotations

import pytest

from ixion.language.model.errors import ErrorCode
from ixion.language.model.ids import ZERO_ID
from ixion.language.protocol.messages.k72_push_telemetry import PushTelemetryRequest, PushTelemetryResponse
from tests.apis.asking import Asking


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({}, ErrorCode.NONE),
        ({"terminating": True}, ErrorCode.NONE),
        ({"compression_type": 4, "metrics": b"x" * 1000}, ErrorCode.NONE),
        ({"client_instance_id": ZERO_ID}, ErrorCode.INVALID_REQUEST),
        ({"subscription_id": 7}, ErrorCode.UNKNOWN_SUBSCRIPTION_ID),
        ({"compression_type": 9}, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE),
        ({"metrics": b"x" * (1_048_576 + 1)}, ErrorCode.TELEMETRY_TOO_LARGE),
    ],
)
def test_what_is_pushed_is_checked_and_dropped(asking: Asking, changes: dict[str, object], code: ErrorCode) -> None:
    request = PushTelemetryRequest(
        client_instance_id=b"c" * 16, subscription_id=0, terminating=False, compression_type=0, metrics=b""
    )
    assert asking.ask(request, PushTelemetryResponse).error_code == ErrorCode.NONE
    assert asking.ask(request.replace(**changes), PushTelemetryResponse).error_code == code
