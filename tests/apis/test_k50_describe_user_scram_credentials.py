from __future__ import annotations

import pytest

from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.messages.k50_describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    UserName,
)
from tests.apis.asking import Asking


@pytest.mark.parametrize("users", [None, ()])
def test_no_user_has_any(asking: Asking, users: tuple[UserName, ...] | None) -> None:
    answer = asking.ask(DescribeUserScramCredentialsRequest(users=users), DescribeUserScramCredentialsResponse)
    assert (answer.error_code, answer.error_message, answer.results) == (ErrorCode.NONE, "", ())


def test_users_by_name(asking: Asking) -> None:
    users = tuple(UserName(name=name) for name in ("a", "b", "a", "a"))
    answer = asking.ask(DescribeUserScramCredentialsRequest(users=users), DescribeUserScramCredentialsResponse)
    found = [(each.user, each.error_code, each.credential_infos) for each in answer.results]
    assert found == [("a", ErrorCode.DUPLICATE_RESOURCE, ()), ("b", ErrorCode.RESOURCE_NOT_FOUND, ())]
