from __future__ import annotations

from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.messages.k50_describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
)
from ixion.language.protocol.messages.k51_alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from tests.apis.asking import Asking


def test_all_changes_of_a_user_are_made_or_none(asking: Asking) -> None:
    """The first user deletes what it does not have, so that nothing of it changes; the second gets its credential."""
    request = AlterUserScramCredentialsRequest(
        deletions=(ScramCredentialDeletion(name="a", mechanism=1),),
        upsertions=tuple(
            ScramCredentialUpsertion(name=name, mechanism=2, iterations=4096, salt=b"s", salted_password=b"p")
            for name in ("b", "a")
        ),
    )
    answer = asking.ask(request, AlterUserScramCredentialsResponse)
    found = [(each.user, each.error_code) for each in answer.results]
    assert found == [("a", ErrorCode.RESOURCE_NOT_FOUND), ("b", ErrorCode.NONE)]
    everybody = asking.ask(DescribeUserScramCredentialsRequest(users=None), DescribeUserScramCredentialsResponse)
    assert "a" not in [each.user for each in everybody.results]
    assert "b" in [each.user for each in everybody.results]
    undo = AlterUserScramCredentialsRequest(deletions=(ScramCredentialDeletion(name="b", mechanism=2),), upsertions=())
    (gone,) = asking.ask(undo, AlterUserScramCredentialsResponse).results
    assert gone.error_code == ErrorCode.NONE
