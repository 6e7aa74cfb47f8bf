from __future__ import annotations

import pytest

from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.messages.k48_describe_client_quotas import (
    ComponentData,
    DescribeClientQuotasRequest,
    DescribeClientQuotasResponse,
)
from ixion.language.protocol.registry import ApiKey
from tests.apis.asking import Asking, versions

USER = ComponentData(entity_type="user", match_type=0, match="a")
CLIENT = ComponentData(entity_type="client-id", match_type=1, match=None)
ADDRESS = ComponentData(entity_type="ip", match_type=2, match=None)


def ask(asking: Asking, *components: ComponentData, version: int = -1) -> DescribeClientQuotasResponse:
    request = DescribeClientQuotasRequest(components=components, strict=False)
    return asking.ask(request, DescribeClientQuotasResponse, version)


def test_there_are_none(asking: Asking) -> None:
    for version in versions(ApiKey.DESCRIBE_CLIENT_QUOTAS):
        for components in ((), (USER,), (USER, CLIENT), (ADDRESS,)):
            answer = ask(asking, *components, version=version)
            assert (answer.error_code, answer.error_message, answer.entries) == (ErrorCode.NONE, "", ())


@pytest.mark.parametrize(
    ("components", "code"),
    [
        ((USER.replace(entity_type=""),), ErrorCode.INVALID_REQUEST),
        ((USER, USER), ErrorCode.INVALID_REQUEST),
        ((USER.replace(entity_type="planet"),), ErrorCode.UNSUPPORTED_VERSION),
        ((USER.replace(match=None),), ErrorCode.INVALID_REQUEST),
        ((CLIENT.replace(match="x"),), ErrorCode.INVALID_REQUEST),
        ((USER.replace(match_type=3),), ErrorCode.INVALID_REQUEST),
        ((ADDRESS, USER), ErrorCode.INVALID_REQUEST),
    ],
)
def test_filters_that_make_no_sense(asking: Asking, components: tuple[ComponentData, ...], code: ErrorCode) -> None:
    answer = ask(asking, *components)
    assert (answer.error_code, answer.entries) == (code, None)
    assert answer.error_message
