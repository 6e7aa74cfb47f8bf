"""Nothing is remembered of a client before its rights are known."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ixion.broker.startup.broker import Broker as RealBroker
from ixion.language.model.acl_names import Operation, ResourceKind
from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.messages.k01_fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic
from ixion.language.protocol.messages.k18_api_versions import ApiVersionsRequest
from ixion.language.protocol.messages.k49_alter_client_quotas import (
    AlterClientQuotasRequest,
    AlterClientQuotasResponse,
    EntityData,
    EntryData,
    OpData,
)
from ixion.language.protocol.registry import ApiKey
from ixion.testing.broker import Broker
from tests.apis.guards.secured import AskingAs, allow, rule, secured
from tests.apis.raw import Raw


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with secured() as running:
        yield running


def test_client_ids_before_the_login(broker: Broker) -> None:
    entity = (EntityData(entity_type="client-id", entity_name=None),)
    entry = EntryData(entity=entity, ops=(OpData(key="request_percentage", value=100.0, remove=False),))
    with AskingAs(broker.bootstrap, "root") as root:
        answer = root.ask(AlterClientQuotasRequest(entries=(entry,), validate_only=False), AlterClientQuotasResponse)
        assert answer.entries[0].error_code == 0

    async def remembered(real: RealBroker) -> tuple[int, int]:
        return len(real.parts.quotas.rates), len(real.parts.quotas.limits.found)

    before = broker.call(remembered)
    for number in range(20):
        with Raw(broker.bootstrap, client_id=f"{number}" * 1_000) as stranger:
            stranger.ask(ApiKey.API_VERSIONS, 0, ApiVersionsRequest())
    assert broker.call(remembered) == before


def fetch(asking: AskingAs, *topics: str) -> FetchResponse:
    parts = tuple(FetchPartition(partition=n, fetch_offset=0, partition_max_bytes=1000) for n in range(3))
    request = FetchRequest(
        replica_id=-1,
        max_wait_ms=0,
        min_bytes=0,
        session_epoch=0,
        topics=tuple(FetchTopic(topic=topic, partitions=parts) for topic in topics),
    )
    return asking.ask(request, FetchResponse, 12)


def test_a_fetch_session_needs_the_right_to_read(broker: Broker) -> None:
    with AskingAs(broker.bootstrap, "root") as root, AskingAs(broker.bootstrap, "alice") as alice:
        allow(root, rule("alice", Operation.READ, ResourceKind.TOPIC, "mine"))
        refused = fetch(alice, "theirs")
        assert refused.session_id == 0
        assert refused.responses[0].partitions[0].error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
        assert fetch(alice, "mine", "theirs").session_id == 0
        assert fetch(alice, "mine").session_id > 0
