"""`request_percentage` counts all of the time that a client takes, whatever it sends and however it goes away.

What takes long is decided by the test: the clock of one step advances by a minute each time it is read.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import pytest

from ixion.broker.apis.call import Call
from ixion.broker.apis.long_request import LongRequest
from ixion.broker.quota.limits import REQUEST
from ixion.broker.startup.broker import Broker as RealBroker
from ixion.language.model.acl_names import CLUSTER_NAME, Operation, ResourceKind
from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.messages.k01_fetch import FetchResponse, ReplicaState
from ixion.language.protocol.messages.k03_metadata import MetadataRequest, MetadataResponse
from ixion.language.protocol.messages.k27_write_txn_markers import (
    WritableTxnMarker,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from ixion.language.protocol.messages.k51_alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    AlterUserScramCredentialsResponse,
    ScramCredentialDeletion,
)
from ixion.language.protocol.registry import ApiKey
from ixion.testing.broker import Broker
from ixion.timer.turns import Steps
from tests.apis.asking import Asking
from tests.apis.guards.secured import AskingAs, allow, rule, secured
from tests.apis.raw import Raw
from tests.apis.test_long_request import offsets
from tests.apis.test_quotas import alter, fetch, held
from tests.apis.test_waiting_clients import Counts, until

METADATA = MetadataRequest(topics=())
SCRAM_SHA_256 = 1


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker() as running:
        yield running


@pytest.fixture
def guarded() -> Iterator[Broker]:
    with secured() as running:
        yield running


def slow(monkeypatch: pytest.MonkeyPatch, module: str) -> None:
    minutes = itertools.count(0, 60_000_000_000)
    monkeypatch.setattr(f"{module}.perf_counter_ns", lambda: next(minutes))


def limit(broker: Broker, client_id: str) -> None:
    with Asking(broker.bootstrap) as admin:
        assert alter(admin, (("client-id", client_id),), request_percentage=50) is ErrorCode.NONE


def test_the_encoding_of_a_response_counts(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    limit(broker, "raw")
    with Raw(broker.bootstrap) as client:
        assert client.ask(ApiKey.METADATA, 9, METADATA).throttle_time_ms == 0
        slow(monkeypatch, "ixion.broker.apis.call")
        client.ask(ApiKey.METADATA, 9, METADATA)
        monkeypatch.undo()
        assert client.ask(ApiKey.METADATA, 9, METADATA).throttle_time_ms == 1_000


def test_a_client_that_leaves_while_its_request_is_decoded_is_charged(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def rate(real: RealBroker) -> float:
        quotas = real.parts.quotas
        return quotas.rates.get((REQUEST, "", "raw"), quotas._new_rate).measure(quotas._monotonic_ms())[0]

    async def decoding(real: RealBroker) -> int:
        return int(real.parts.server._shared.lane.waiting)

    def endless(_request: LongRequest) -> Steps[Call]:
        while True:
            yield

    limit(broker, "raw")
    idle = Counts(broker).connections
    monkeypatch.setattr(LongRequest, "_decode", endless)
    with Raw(broker.bootstrap) as client:
        client.send(ApiKey.LIST_OFFSETS, 7, offsets(20_000))
        until(broker, lambda _now: broker.call(decoding) == 1)
    until(broker, lambda now: now.connections == idle and now.bytes == 0)
    assert broker.call(rate) > 0


def test_a_change_of_credentials_counts_in_all_its_steps(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    limit(broker, "asking")
    wish = ScramCredentialDeletion(name="nobody", mechanism=SCRAM_SHA_256)
    request = AlterUserScramCredentialsRequest(deletions=(wish,), upsertions=())
    slow(monkeypatch, "ixion.timer.payer")
    with Asking(broker.bootstrap) as client:
        assert client.ask(request, AlterUserScramCredentialsResponse).throttle_time_ms == 1_000


def test_a_client_that_only_claims_to_be_a_broker_is_charged(guarded: Broker) -> None:
    marker = WritableTxnMarker(producer_id=1, producer_epoch=0, transaction_result=True, topics=(), coordinator_epoch=0)
    older = fetch().replace(replica_id=7)
    newer = fetch().replace(topics=(), replica_state=ReplicaState(replica_id=7, replica_epoch=-1))
    with AskingAs(guarded.bootstrap, "root") as root:
        assert alter(root, (("user", "alice"),), request_percentage=0.000001) is ErrorCode.NONE
        with AskingAs(guarded.bootstrap, "alice") as alice:
            alice.ask(WriteTxnMarkersRequest(markers=(marker,)), WriteTxnMarkersResponse)
            assert held(guarded) == 1, "there is no throttle time in this answer"
        for version, follower in ((12, older), (15, newer)):
            with AskingAs(guarded.bootstrap, "alice") as alice:
                assert alice.ask(follower, FetchResponse, version).throttle_time_ms == 1_000
        allow(root, rule("alice", Operation.CLUSTER_ACTION, ResourceKind.CLUSTER, CLUSTER_NAME))
        with AskingAs(guarded.bootstrap, "alice") as alice:
            assert alice.ask(older, FetchResponse, 12).throttle_time_ms == 0
            assert alice.ask(METADATA, MetadataResponse).throttle_time_ms == 1_000
