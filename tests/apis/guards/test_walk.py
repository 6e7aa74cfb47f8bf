"""A second principal sees nothing of the first's topics, groups and transactions, through any API in any version."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from ixion.broker.apis.guards.guard import EVERYBODY, IN_HANDLER
from ixion.broker.apis.served import SERVED, api_of
from ixion.language.model.acl_names import Operation, ResourceKind
from ixion.language.model.ids import ZERO_ID
from ixion.language.protocol.messages.k03_metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from ixion.language.protocol.messages.k16_list_groups import ListGroupsRequest, ListGroupsResponse
from ixion.language.protocol.messages.k19_create_topics import CreateTopicsRequest, CreateTopicsResponse
from ixion.language.protocol.messages.k22_init_producer_id import InitProducerIdResponse
from ixion.language.protocol.messages.k66_list_transactions import ListTransactionsRequest, ListTransactionsResponse
from ixion.language.protocol.notation import Struct
from ixion.language.protocol.registry import ApiKey
from ixion.testing.broker import Broker
from tests.apis.asking import versions
from tests.apis.guards.requests_of import REQUESTS, Names, requests
from tests.apis.guards.secured import AskingAs, allow, rule, secured

ABSENT = Names("Absent", b"absent topic id ", "Nobodys", "Nothing")
RIGHTS = (
    (Operation.ALL, ResourceKind.TOPIC, "Secret"),
    (Operation.ALL, ResourceKind.GROUP, "Hidden0"),
    (Operation.ALL, ResourceKind.TRANSACTIONAL_ID, "Private"),
)


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with secured() as running:
        yield running


@pytest.fixture(scope="module")
def known(broker: Broker) -> Iterator[Names]:
    """What alice has: a topic with a record, a group with a commit, a transactional id."""
    with AskingAs(broker.bootstrap, "root") as root, AskingAs(broker.bootstrap, "alice") as alice:
        allow(root, *(rule("alice", *each) for each in RIGHTS))
        allow(root, rule("bob", Operation.READ, ResourceKind.GROUP, "own-of-bob"))
        names = Names("Secret", ZERO_ID, "Hidden0", "Private")
        create = requests(ApiKey.CREATE_TOPICS, names, 5)[1]
        assert isinstance(create, CreateTopicsRequest)
        assert alice.ask(create, CreateTopicsResponse, 5).topics[0].error_code == 0
        described = alice.ask(MetadataRequest(topics=(MetadataRequestTopic(name="Secret"),)), MetadataResponse)
        names = Names("Secret", described.topics[0].topic_id, "Hidden0", "Private")
        for key, version in ((ApiKey.PRODUCE, 12), (ApiKey.FIND_COORDINATOR, 4), (ApiKey.OFFSET_COMMIT, 9)):
            for request in requests(key, names, version)[: 1 if key is ApiKey.PRODUCE else 2]:
                assert "error_code=0" in repr(alice.ask(request, Struct, version)).replace("ErrorCode.NONE", "0")
        init = requests(ApiKey.INIT_PRODUCER_ID, names, 4)[0]
        assert alice.ask(init, InitProducerIdResponse, 4).error_code == 0
        yield names


def test_every_api_that_is_served_has_a_rule_and_requests_to_walk_it_with() -> None:
    for key in SERVED:
        api = api_of(key)
        assert hasattr(api, "RIGHTS") != hasattr(api, "make_guard"), key
        rights = getattr(api, "RIGHTS", None)
        assert callable(getattr(api, "make_guard", rights)) or rights in (IN_HANDLER, EVERYBODY), key
    assert set(REQUESTS) >= set(SERVED)


def text_of(answer: Struct, names: Names) -> str:
    """The answer, with the names that were asked for taken out."""
    text = repr(answer)
    for name, stands in zip((names.topic, names.group, names.transactional_id), ("TOPIC", "GROUP", "ID"), strict=True):
        text = text.replace(name, stands)
    return re.sub("0x[0-9a-f]+", "ADDRESS", text.replace(repr(names.topic_id), "TOPIC-ID"))


@pytest.mark.parametrize("key", SERVED)
def test_a_second_principal_learns_nothing(broker: Broker, known: Names, key: ApiKey) -> None:
    """What exists and is not for bob is answered as what does not exist."""
    with AskingAs(broker.bootstrap, "bob") as bob:
        for version in versions(key):
            there = requests(key, known, version)
            absent = requests(key, ABSENT, version)
            for real, other in zip(there, absent, strict=True):
                got, expected = bob.ask(real, Struct, version), bob.ask(other, Struct, version)
                named = repr(real)
                for secret in (known.topic, known.group, known.transactional_id, repr(known.topic_id)):
                    assert secret not in repr(got) or secret in named, (version, got)
                if not asks_by_id(key, version, real):
                    assert text_of(got, known) == text_of(expected, ABSENT), version


def asks_by_id(key: ApiKey, version: int, request: Any) -> bool:
    """Ids are no secret, as in Kafka: a known one is refused, an unknown one is unknown."""
    since = {ApiKey.PRODUCE: 13, ApiKey.FETCH: 13, ApiKey.OFFSET_COMMIT: 99, ApiKey.OFFSET_FETCH: 99}
    if key in since:
        return version >= since[key]
    topics = getattr(request, "topics", None) or ()
    return any(getattr(topic, "topic_id", ZERO_ID) != ZERO_ID for topic in topics)


def test_and_nothing_of_it_has_changed_anything(broker: Broker, known: Names) -> None:
    with AskingAs(broker.bootstrap, "alice") as alice:
        answer = alice.ask(MetadataRequest(topics=None), MetadataResponse)
        assert [topic.name for topic in answer.topics] == ["Secret"]
        assert len(answer.topics[0].partitions) == 1
        groups = alice.ask(ListGroupsRequest(), ListGroupsResponse).groups
        assert [group.group_id for group in groups] == ["Hidden0"]
        listed = alice.ask(ListTransactionsRequest(state_filters=(), producer_id_filters=()), ListTransactionsResponse)
        assert [state.transactional_id for state in listed.transaction_states] == ["Private"]


# For administrators, or it would destroy what the other tests look at, or it waits for other members.
NOT_ALICES = {
    *(ApiKey.WRITE_TXN_MARKERS, ApiKey.DESCRIBE_ACLS, ApiKey.CREATE_ACLS, ApiKey.DELETE_ACLS),
    *(ApiKey.ALTER_REPLICA_LOG_DIRS, ApiKey.DESCRIBE_LOG_DIRS, ApiKey.ELECT_LEADERS),
    *(ApiKey.ALTER_PARTITION_REASSIGNMENTS, ApiKey.LIST_PARTITION_REASSIGNMENTS, ApiKey.DESCRIBE_CLIENT_QUOTAS),
    *(ApiKey.ALTER_CLIENT_QUOTAS, ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, ApiKey.ALTER_USER_SCRAM_CREDENTIALS),
    *(ApiKey.DESCRIBE_QUORUM, ApiKey.UPDATE_FEATURES, ApiKey.LIST_CONFIG_RESOURCES, ApiKey.DELETE_TOPICS),
    *(ApiKey.LEADER_AND_ISR, ApiKey.STOP_REPLICA, ApiKey.UPDATE_METADATA, ApiKey.CONTROLLED_SHUTDOWN),
    *(ApiKey.ALTER_PARTITION, ApiKey.ALLOCATE_PRODUCER_IDS),
    *(ApiKey.INITIALIZE_SHARE_GROUP_STATE, ApiKey.READ_SHARE_GROUP_STATE, ApiKey.WRITE_SHARE_GROUP_STATE),
    *(ApiKey.DELETE_SHARE_GROUP_STATE, ApiKey.READ_SHARE_GROUP_STATE_SUMMARY),
    *(ApiKey.DELETE_GROUPS, ApiKey.SYNC_GROUP, ApiKey.JOIN_GROUP),
}


@pytest.mark.parametrize("key", [key for key in SERVED if key not in NOT_ALICES])
def test_the_first_principal_is_not_refused_what_is_its_own(broker: Broker, known: Names, key: ApiKey) -> None:
    """The rules that refuse bob let alice through: no code of authorisation for her own resources."""
    refusals = ("=29,", "=30,", "=31,", "=53,")
    version = key.newest if key is not ApiKey.ADD_PARTITIONS_TO_TXN else 3
    with AskingAs(broker.bootstrap, "alice") as alice:
        for request in requests(key, known, version):
            if key is ApiKey.FETCH and "replica_id=0" in repr(request):
                continue
            answer = repr(alice.ask(request, Struct, version))
            if "resource_type=4" in answer or "resource_type=8" in answer or "own-of-bob" in repr(request):
                continue
            assert not any(f"error_code{code}" in answer for code in refusals), answer
