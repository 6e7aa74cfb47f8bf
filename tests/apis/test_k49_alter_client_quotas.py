from __future__ import annotations

from ixion.model.errors import ErrorCode
from ixion.protocol.messages.k49_alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    EntityData,
    EntryData,
    OpData,
)
from ixion.protocol.registry import ApiKey
from tests.apis.asking import Asking, versions


def test_each_entry_is_refused_with_the_reason(asking: Asking) -> None:
    users = [(EntityData(entity_type="user", entity_name=name),) for name in ("a", None)]
    operation = OpData(key="producer_byte_rate", value=1024.0, remove=False)
    entries = tuple(EntryData(entity=user, ops=(operation,)) for user in users)
    for version in versions(ApiKey.ALTER_CLIENT_QUOTAS):
        request = AlterClientQuotasRequest(entries=entries, validate_only=False)
        answer = asking.ask(request, AlterClientQuotasResponse, version)
        assert [each.entity for each in answer.entries] == users
        assert {each.error_code for each in answer.entries} == {ErrorCode.UNSUPPORTED_VERSION}
        assert all("quotas" in (each.error_message or "") for each in answer.entries)
