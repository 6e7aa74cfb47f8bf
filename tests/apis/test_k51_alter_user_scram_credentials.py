from __future__ import annotations

from ixion.model.errors import ErrorCode
from ixion.protocol.messages.k51_alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from tests.apis.asking import Asking


def test_each_user_is_refused_with_the_reason(asking: Asking) -> None:
    request = AlterUserScramCredentialsRequest(
        deletions=(ScramCredentialDeletion(name="a", mechanism=1),),
        upsertions=tuple(
            ScramCredentialUpsertion(name=name, mechanism=2, iterations=4096, salt=b"s", salted_password=b"p")
            for name in ("b", "a")
        ),
    )
    answer = asking.ask(request, AlterUserScramCredentialsResponse)
    refused = ErrorCode.UNSUPPORTED_SASL_MECHANISM
    assert [(each.user, each.error_code) for each in answer.results] == [("a", refused), ("b", refused)]
    assert all("SCRAM" in (each.error_message or "") for each in answer.results)
