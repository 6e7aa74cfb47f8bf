"""The same 650 requests, with and without rights, to Apache Kafka 4.3.0 with its StandardAuthorizer and to ixion.

Error codes and names of topics, groups and transactional ids in the answers must be the same. Of a few APIs
(`REFUSALS_ONLY`) the two answer differently for other reasons, and only refusals are compared.

With the compiled package only: it starts a JVM, and what is compared is the same both ways.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from devtools.kafka import RealKafka, free_port
from devtools.parts import need
from ixion.language.model.acl_names import CLUSTER_NAME, Operation, PatternKind, Permission, ResourceKind
from ixion.language.protocol.messages.k03_metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from ixion.language.protocol.messages.k10_find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from ixion.language.protocol.messages.k18_api_versions import ApiVersionsRequest, ApiVersionsResponse
from ixion.language.protocol.messages.k19_create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from ixion.language.protocol.notation import Struct
from ixion.language.protocol.registry import ApiKey
from tests.apis.guards.requests_of import REQUESTS, Names, requests
from tests.apis.guards.secured import SETTINGS, AskingAs, allow, rule, secured

pytestmark = pytest.mark.skipif(
    os.environ.get("IXION_EXPECT") == "interpreted", reason="runs with the compiled package, see the module"
)

TOPIC, GROUP, CLUSTER = ResourceKind.TOPIC, ResourceKind.GROUP, ResourceKind.CLUSTER
TRANSACTIONAL_ID = ResourceKind.TRANSACTIONAL_ID
TOPICS = ("a1", "a2", "b1")
RULES = (
    rule("alice", Operation.READ, TOPIC, "a", PatternKind.PREFIXED),
    rule("alice", Operation.WRITE, TOPIC, "a1"),
    rule("alice", Operation.READ, TOPIC, "a2", PatternKind.LITERAL, Permission.DENY),
    rule("alice", Operation.DESCRIBE_CONFIGS, TOPIC, "*"),
    rule("alice", Operation.READ, GROUP, "g1"),
    rule("alice", Operation.DESCRIBE, GROUP, "g2"),
    rule("alice", Operation.WRITE, TRANSACTIONAL_ID, "t1"),
    rule("alice", Operation.DESCRIBE, TRANSACTIONAL_ID, "t2"),
    rule("alice", Operation.DESCRIBE, CLUSTER, CLUSTER_NAME),
)
NAMES = {
    "allowed": ("a1", "g1", "t1"),
    "described": ("a2", "g2", "t2"),
    "forbidden": ("b1", "g3", "t3"),
    "absent": ("c1", "g4", "t4"),
}
# What the answer has is not for the asker to decide, or the two have it differently for other reasons.
LEFT_OUT = {
    ApiKey.SASL_HANDSHAKE,
    ApiKey.SASL_AUTHENTICATE,
    ApiKey.API_VERSIONS,
    ApiKey.GET_TELEMETRY_SUBSCRIPTIONS,  # Kafka has no such API without a receiver of telemetry
    ApiKey.PUSH_TELEMETRY,
    ApiKey.ALTER_PARTITION,  # brokers of KRaft talk to their controller, elsewhere
    ApiKey.ALLOCATE_PRODUCER_IDS,
    ApiKey.CONTROLLED_SHUTDOWN,
    ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,  # Kafka never answers when it refuses to describe all users
    ApiKey.LEADER_AND_ISR,  # gone in 4.0
    ApiKey.STOP_REPLICA,
    ApiKey.UPDATE_METADATA,
}
REFUSALS_ONLY = {
    ApiKey.INIT_PRODUCER_ID,  # Kafka's coordinator may still be loading, and what follows depends on it
    ApiKey.ADD_PARTITIONS_TO_TXN,
    ApiKey.ADD_OFFSETS_TO_TXN,
    ApiKey.END_TXN,
    ApiKey.TXN_OFFSET_COMMIT,
    ApiKey.DESCRIBE_TRANSACTIONS,
    ApiKey.LIST_TRANSACTIONS,
    ApiKey.DESCRIBE_CONFIGS,  # settings that only one of the two has
    ApiKey.SHARE_FETCH,  # Kafka's first answers leave a partition out whose state is still being read
    ApiKey.DESCRIBE_QUORUM,  # the listener of Kafka's controller
}
REFUSALS = {29, 30, 31, 53, 65}  # of topics, groups, the cluster, transactional ids, tokens


SECRET = {"delegation.token.secret.key": "secret"}


@dataclass(frozen=True)
class Server:
    bootstrap: str
    versions: dict[int, int]
    ids: dict[str, bytes]


def prepare(bootstrap: str) -> Server:
    with AskingAs(bootstrap, "root") as root:
        topics = tuple(
            CreatableTopic(name=name, num_partitions=1, replication_factor=1, assignments=(), configs=())
            for name in TOPICS
        )
        made = root.ask(CreateTopicsRequest(topics=topics), CreateTopicsResponse, 7)
        assert {topic.error_code for topic in made.topics} == {0}
        allow(root, *RULES)
        for key_type, key in ((0, "g1"), (1, "t1")):
            found = FindCoordinatorRequest(key_type=key_type, coordinator_keys=(key,))
            while root.ask(found, FindCoordinatorResponse, 4).coordinators[0].error_code:
                pass
        asked = MetadataRequest(topics=tuple(MetadataRequestTopic(name=name) for name in TOPICS))
        ids = {str(topic.name): topic.topic_id for topic in root.ask(asked, MetadataResponse, 12).topics}
        software = ApiVersionsRequest(client_software_name="a", client_software_version="1")
        keys = root.ask(software, ApiVersionsResponse, 3).api_keys
        return Server(bootstrap, {each.api_key: each.max_version for each in keys}, ids)


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    need("kafka-4.3.0")
    port = free_port()
    jaas = "listener.name.sasl_plaintext.plain.sasl.jaas.config"
    properties = {
        "sasl.enabled.mechanisms": "PLAIN",
        jaas: SETTINGS[jaas],
        **SECRET,
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:root;User:ANONYMOUS",  # the latter are the broker and its controller
    }
    path: Path = tmp_path_factory.mktemp("kafka-with-acls")
    with RealKafka("4.3.0", path, listeners={"SASL_PLAINTEXT": port}, properties=properties):
        yield prepare(f"127.0.0.1:{port}")


@pytest.fixture(scope="module")
def ixion() -> Iterator[Server]:
    with secured(SECRET) as broker:
        yield prepare(broker.bootstrap)


def codes(value: object, field: str = "") -> Iterator[tuple[str, object]]:
    """Error codes and names of an answer, by field, without their order."""
    if isinstance(value, Struct):
        for column in type(value).columns:
            yield from codes(getattr(value, column.name), column.name)
    elif isinstance(value, tuple):
        for each in value:
            yield from codes(each, field)
    elif field.endswith("error_code") or field in ("name", "topic", "topic_name", "group_id", "transactional_id"):
        yield field, value


def asked(server: Server, user: str, key: ApiKey, version: int) -> dict[str, object]:
    found: dict[str, object] = {}
    with AskingAs(server.bootstrap, user) as asking:
        for label, (topic, group, transactional_id) in NAMES.items():
            names = Names(topic, server.ids.get(topic, b"absent topic id "), group, transactional_id)
            for number, request in enumerate(requests(key, names, version)):
                try:
                    answer = asking.ask(request, Struct, version)
                except ConnectionError as error:
                    found[f"{label} {number}"] = str(error)
                    break
                lines = sorted(map(str, codes(answer)))
                refused = [line for line in lines if any(f", {code})" in line for code in REFUSALS)]
                if key in REFUSALS_ONLY:
                    lines = refused or ["not refused"]
                found[f"{label} {number}"] = lines
    return found


@pytest.mark.parametrize("key", [key for key in REQUESTS if key not in LEFT_OUT])
def test_answers_are_kafkas(kafka: Server, ixion: Server, key: ApiKey) -> None:
    version = min(key.newest, kafka.versions[int(key)])
    for user in ("alice", "bob"):
        ours = asked(ixion, user, key, version)
        deadline = time.monotonic() + 20
        while (theirs := asked(kafka, user, key, version)) != ours and time.monotonic() < deadline:
            time.sleep(0.1)  # what was made a moment ago is not known to all parts of Kafka yet
        assert ours == theirs, user
