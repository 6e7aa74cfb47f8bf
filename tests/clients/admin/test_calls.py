"""Every call of the administrator, against ixion and against Apache Kafka 3.9.1 and 4.3.0."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

from ixion.clients import Admin, Consumer, Producer, TopicPartition, aio
from ixion.clients.admin.configs import APPEND, Change, ConfigEntry, Resource
from ixion.clients.admin.group_offsets import CommittedOffset
from ixion.clients.admin.offsets import EARLIEST, LATEST, MAX_TIMESTAMP
from ixion.clients.admin.quotas import QuotaFilter, entity
from ixion.clients.admin.replicas import BrokerReplica
from ixion.clients.admin.topics import NewPartitions, NewTopic
from ixion.clients.admin.users import ScramDeletion, ScramMechanism, ScramUpsertion
from ixion.clients.faults import UnknownTopicError
from ixion.language.model.acl_binding import Binding, Entry, Filter, ResourcePattern
from ixion.language.model.acl_names import Operation, Permission, ResourceKind
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.model.resource_type import ResourceType
from ixion.testing import Broker
from tests.servers import ApacheKafka

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module", params=["ixion", "3.9.1", "4.3.0"])
def bootstrap(request: pytest.FixtureRequest) -> Iterator[str]:
    if request.param == "ixion":
        with Broker() as broker:
            yield broker.bootstrap
    else:
        if os.environ.get("IXION_EXPECT") == "interpreted":
            pytest.skip("a broker of Apache Kafka: once is enough, compiled")
        apache_kafka: ApacheKafka = request.getfixturevalue("apache_kafka")
        yield apache_kafka(request.param).bootstrap


@pytest.fixture
def admin(bootstrap: str) -> Iterator[Admin]:
    with Admin(bootstrap) as made:
        yield made


def topic(admin: Admin, name: str, partitions: int = 1, **configs: str) -> TopicPartition:
    found = NewTopic(name, partitions, 1, {key.replace("_", "."): value for key, value in configs.items()})
    admin.create_topics([found]).check()
    return TopicPartition(name, 0)


def fill(bootstrap: str, place: TopicPartition, count: int, **settings: Any) -> None:
    with Producer(bootstrap, **settings) as producer:
        for number in range(count):
            producer.send(place.topic, b"%d" % number, partition=place.partition, timestamp_ms=1000 + number)


def test_topics(admin: Admin) -> None:
    found = admin.create_topics([NewTopic("a-one", 3, 1), NewTopic("a-two", 1, 1), NewTopic("a/three", 1, 1)])
    assert set(found.done) == {"a-one", "a-two"}
    made = found["a-one"]
    assert made is not None
    assert [part.leader >= 0 for part in made.partitions] == [True] * 3
    assert found.faults["a/three"].code is ErrorCode.INVALID_TOPIC_EXCEPTION
    with pytest.raises(KafkaError) as caught:
        admin.create_topics([NewTopic("a-one")]).check()
    assert caught.value.code is ErrorCode.TOPIC_ALREADY_EXISTS
    assert admin.create_topics([NewTopic("a-dry", 1, 1)], validate_only=True)["a-dry"] is None
    names = [each.name for each in admin.list_topics()]
    assert {"a-one", "a-two"} <= set(names)
    assert "a-dry" not in names
    node = admin.describe_cluster().nodes[0].node_id
    placed = admin.create_topics([NewTopic("a-placed", assignment=[[node], [node]])]).check()["a-placed"]
    assert placed is not None
    assert len(placed.partitions) == 2
    described = admin.describe_topics(["a-one", "a-ona"])
    assert len(described["a-one"].partitions) == 3
    with pytest.raises(UnknownTopicError, match="did you mean 'a-one'"):
        described["a-ona"]
    grown = admin.create_partitions({"a-two": 2, "a-placed": NewPartitions(3, [[node]]), "a-none": 4, "a-one": 1})
    assert set(grown.done) == {"a-two", "a-placed"}
    assert isinstance(grown.faults["a-none"], UnknownTopicError)
    assert grown.faults["a-one"].code is ErrorCode.INVALID_PARTITIONS
    assert len(admin.describe_topics(["a-two"])["a-two"].partitions) == 2
    gone = admin.delete_topics(["a-two", "a-nobody"])
    assert set(gone.done) == {"a-two"}
    assert isinstance(gone.faults["a-nobody"], UnknownTopicError)
    by_id = admin.describe_topics_by_id([placed.topic_id, bytes(range(16))])
    assert by_id[placed.topic_id].name == "a-placed"
    assert by_id.faults[bytes(range(16))].code is ErrorCode.UNKNOWN_TOPIC_ID
    assert admin.delete_topics_by_id([placed.topic_id, bytes(range(16))]).done.keys() == {placed.topic_id}


def test_settings(admin: Admin) -> None:
    topic(admin, "b-one")
    one, nobody = Resource(ResourceType.TOPIC, "b-one"), Resource(ResourceType.TOPIC, "b-ona")
    node = admin.describe_cluster().nodes[0].node_id
    broker = Resource(ResourceType.BROKER, str(node))
    changed = admin.alter_configs({one: {"retention.ms": "4711", "cleanup.policy": Change(APPEND, "compact")}})
    assert changed.check() == {one: None}
    while not retention(admin, one).is_set:
        pass  # an Apache Kafka 4 broker applies it a moment after its controller has answered
    found = admin.describe_configs([one, nobody, broker, Resource(ResourceType.BROKER, "77")], synonyms=True)
    entries = {entry.name: entry for entry in found[one]}
    assert (entries["retention.ms"].value, entries["retention.ms"].source) == ("4711", "topic")
    assert entries["retention.ms"].is_set
    assert entries["cleanup.policy"].value == "delete,compact"
    assert entries["retention.ms"].synonyms
    assert isinstance(found.faults[nobody], UnknownTopicError)
    assert found.faults[Resource(ResourceType.BROKER, "77")].message == f"there is no broker '77', only {node}"
    nobody_there = Resource(ResourceType.BROKER, "x")
    assert "there is no broker 'x'" in admin.describe_configs([nobody_there]).faults[nobody_there].message
    assert any(entry.name == "log.retention.ms" for entry in found[broker])
    wrong = admin.alter_configs({one: {"retention.m": "1"}, nobody: {"retention.ms": "1"}})
    assert wrong.faults.keys() == {one, nobody}
    assert wrong.faults[one].code is ErrorCode.INVALID_CONFIG
    admin.alter_configs({one: {"retention.ms": None}}, validate_only=True).check()
    assert retention(admin, one).value == "4711"
    admin.alter_configs({one: {"retention.ms": None}}).check()
    while retention(admin, one).is_set:
        pass  # as above


def retention(admin: Admin, topic: Resource) -> ConfigEntry:
    return {entry.name: entry for entry in admin.describe_configs([topic])[topic]}["retention.ms"]


def test_offsets_and_records(admin: Admin, bootstrap: str) -> None:
    place = topic(admin, "c-one", 2)
    other = TopicPartition("c-one", 1)
    fill(bootstrap, place, 10)
    found = admin.list_offsets({place: LATEST, other: EARLIEST, TopicPartition("c-one", 7): LATEST})
    assert found[place].offset == 10
    assert found[other].offset == 0
    assert found.faults[TopicPartition("c-one", 7)].code is ErrorCode.INVALID_PARTITIONS
    assert admin.list_offsets({place: 1004})[place][:2] == (4, 1004)
    assert admin.list_offsets({place: MAX_TIMESTAMP})[place][:2] == (9, 1009)
    assert admin.list_offsets({place: 10**15}, read_committed=True)[place].offset == -1
    deleted = admin.delete_records({place: 4, other: 3})
    assert deleted[place] == 4
    assert deleted.faults[other].code is ErrorCode.OFFSET_OUT_OF_RANGE
    assert admin.list_offsets({place: EARLIEST})[place].offset == 4


def test_groups_and_their_offsets(admin: Admin, bootstrap: str) -> None:
    place = topic(admin, "d-one")
    fill(bootstrap, place, 3)
    assert admin.alter_group_offsets("d-idle", {place: CommittedOffset(2, "note")}).check() == {place: None}
    assert admin.list_group_offsets(["d-idle", "d-none"]).check() == {
        "d-idle": {place: CommittedOffset(2, "note", -1)},
        "d-none": {},
    }
    assert admin.list_group_offsets({"d-idle": [TopicPartition("d-one", 5)]})["d-idle"] == {}
    settings: dict[str, Any] = {"auto_offset_reset": "earliest", "group_instance_id": "me"}
    with Consumer(bootstrap, group="d-busy", topics=["d-one"], **settings) as consumer:
        while not consumer.poll(10):
            pass
        found = admin.describe_groups(["d-busy", "d-idle", "d-none"])
        (member,) = found["d-busy"].members
        assert member.instance_id == "me"
        assert member.partitions == (place,)
        assert found["d-idle"].members == ()
        assert found.faults["d-none"].code is ErrorCode.GROUP_ID_NOT_FOUND
        busy = admin.alter_group_offsets("d-busy", {place: 0})
        assert busy.faults[place].code is ErrorCode.NON_EMPTY_GROUP
        refused = admin.delete_groups(["d-busy"])
        assert refused.faults["d-busy"].code is ErrorCode.NON_EMPTY_GROUP
        listed = {group.group: group for group in admin.list_groups()}
        assert listed["d-busy"].state == "Stable"
        assert "d-idle" not in {group.group for group in admin.list_groups(states=["Stable"])}
        removed = admin.remove_members("d-busy", ["me", "you"])
        assert set(removed.done) == {"me"}
        assert removed.faults["you"].code is ErrorCode.UNKNOWN_MEMBER_ID
    assert admin.delete_group_offsets("d-idle", [place]).check() == {place: None}
    assert admin.list_group_offsets(["d-idle"])["d-idle"] == {}
    assert admin.delete_group_offsets("d-nobody", [place]).faults[place].code is ErrorCode.GROUP_ID_NOT_FOUND
    gone = admin.delete_groups(["d-idle", "d-none"])
    assert "d-none" in gone.faults


def test_the_cluster_and_its_disks(admin: Admin, bootstrap: str) -> None:
    place = topic(admin, "e-one")
    fill(bootstrap, place, 3)
    cluster = admin.describe_cluster()
    assert cluster.cluster_id
    node = cluster.nodes[0].node_id
    assert admin.describe_features().epoch is not None or admin.describe_features().finalized == {}
    directories = admin.describe_log_dirs()
    assert [each.path for each in directories] == [each.path for each in admin.describe_log_dirs([node])]
    (directory,) = [each for each in directories if place in [replica.partition for replica in each.replicas]]
    replica = BrokerReplica(place, node)
    assert admin.describe_replica_log_dirs([replica])[replica].path == directory.path
    moved = admin.alter_replica_log_dirs({replica: "/no/such/directory"})
    assert moved.faults[replica].code is ErrorCode.LOG_DIR_NOT_FOUND
    assert admin.list_partition_reassignments() == {}
    same = admin.alter_partition_reassignments({place: [node], TopicPartition("e-none", 0): [node]})
    assert place in same.done
    assert same.faults[TopicPartition("e-none", 0)].code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    cancelled = admin.alter_partition_reassignments({place: None})
    assert cancelled.faults[place].code is ErrorCode.NO_REASSIGNMENT_IN_PROGRESS
    elected = admin.elect_leaders([place])
    assert elected.faults[place].code is ErrorCode.ELECTION_NOT_NEEDED
    levels = admin.describe_features().finalized
    if "metadata.version" in levels:
        with pytest.raises(KafkaError):
            admin.update_features({"metadata.version": 999}).check()


def test_transactions(admin: Admin, bootstrap: str) -> None:
    place = topic(admin, "f-one")
    with Producer(bootstrap, transactional_id="f-txn") as producer:
        producer.init_transactions()
        producer.begin_transaction()
        producer.send("f-one", b"x").result()
        listed = {each.transactional_id: each for each in admin.list_transactions()}
        assert listed["f-txn"].state == "Ongoing"
        assert "f-txn" not in {each.transactional_id for each in admin.list_transactions(states=["CompleteCommit"])}
        found = admin.describe_transactions(["f-txn", "f-none"])
        assert found["f-txn"].partitions == (place,)
        assert found.faults["f-none"].code is ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
        (active,) = admin.describe_producers([place])[place]
        assert active.producer_id == found["f-txn"].producer_id
        assert active.start_offset == 0
        (opened,) = admin.open_transactions([place])
        assert opened.start_offset == 0
        assert admin.find_hanging([place]) == []
        producer.abort_transaction()
    producer = Producer(bootstrap, transactional_id="f-fenced")
    producer.init_transactions()
    fenced = admin.fence_producers(["f-fenced"])
    assert fenced["f-fenced"][0] >= 0
    producer.begin_transaction()
    producer.send("f-one", b"y")
    with pytest.raises(KafkaError) as caught:
        producer.commit_transaction()
    assert caught.value.code in (ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH)
    with suppress(KafkaError):
        producer.close()


def test_users(admin: Admin) -> None:
    secret = ScramUpsertion("g-alice", "a-secret")
    assert "a-secret" not in repr(secret)
    made = admin.alter_user_scram_credentials([secret, ScramUpsertion("g-bob", "x", "SCRAM-SHA-256", iterations=8192)])
    assert set(made.check()) == {"g-alice", "g-bob"}
    while not {"g-alice", "g-bob"} <= set(admin.describe_user_scram_credentials()):
        pass  # the broker that we ask learns of it a moment later
    found = admin.describe_user_scram_credentials(["g-alice", "g-bob", "g-none"])
    assert found["g-alice"] == [ScramMechanism("SCRAM-SHA-512", 4096)]
    assert found["g-bob"] == [ScramMechanism("SCRAM-SHA-256", 8192)]
    assert found.faults["g-none"].code is ErrorCode.RESOURCE_NOT_FOUND
    gone = admin.alter_user_scram_credentials([ScramDeletion("g-alice"), ScramDeletion("g-bob")])
    assert set(gone.done) == {"g-alice"}
    assert gone.faults["g-bob"].code is ErrorCode.RESOURCE_NOT_FOUND
    with pytest.raises(ValueError, match="unknown SCRAM mechanism 'PLAIN'"):
        ScramUpsertion("x", "y", "PLAIN")
    with pytest.raises(ValueError, match="iterations must be at least 1, not 0"):
        ScramUpsertion("x", "y", iterations=0)


def test_a_loop_goes_on_while_a_password_is_salted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Salting takes the processor for milliseconds, and for seconds with many iterations."""
    from ixion.language.sasl import scram

    real = scram.salted_password
    threads: list[int] = []

    def salt(mechanism: str, password: str, salt: bytes, iterations: int) -> bytes:
        threads.append(threading.get_ident())
        return real(mechanism, password, salt, iterations)

    async def work(bootstrap: str) -> None:
        async with aio.Admin(bootstrap) as admin:
            changes = [ScramUpsertion("h-user", "secret", name) for name in ("SCRAM-SHA-256", "SCRAM-SHA-512")]
            (await admin.alter_user_scram_credentials(changes)).check()
            assert len(threads) == 2
            assert threading.get_ident() not in threads
            with pytest.raises(UnicodeEncodeError):
                await admin.alter_user_scram_credentials([ScramUpsertion("h-user", "\udc80")])

    monkeypatch.setattr(scram, "salted_password", salt)
    with Broker() as broker:
        asyncio.run(work(broker.bootstrap))
        with Admin(broker.bootstrap) as admin, pytest.raises(UnicodeEncodeError):
            admin.alter_user_scram_credentials([ScramUpsertion("h-user", "\udc80")])


def test_what_a_broker_without_it_refuses(admin: Admin) -> None:
    """Access rules without an authorizer, delegation tokens without a key: named as such, not a fault of the client."""
    rule = Binding(ResourcePattern(ResourceKind.TOPIC, "t"), Entry("User:a", "*", Operation.READ, Permission.ALLOW))
    with pytest.raises(KafkaError) as caught:
        admin.describe_acls(Filter(ResourceKind.TOPIC))
    assert caught.value.code is ErrorCode.SECURITY_DISABLED
    assert admin.create_acls([rule]).faults[rule].code is ErrorCode.SECURITY_DISABLED
    assert admin.delete_acls([Filter()]).faults[Filter()].code is ErrorCode.SECURITY_DISABLED
    with pytest.raises(KafkaError):
        admin.create_delegation_token()
    with pytest.raises(KafkaError):
        admin.describe_delegation_tokens()
    with pytest.raises(KafkaError):
        admin.renew_delegation_token(b"x")
    with pytest.raises(KafkaError):
        admin.expire_delegation_token(b"x")


def test_quotas(admin: Admin) -> None:
    bob = entity({"user": "h-bob"})
    made = admin.alter_client_quotas({bob: {"producer_byte_rate": 1024.0}})
    if made.faults:  # a broker that keeps none
        assert made.faults[bob].code in (ErrorCode.UNSUPPORTED_VERSION, ErrorCode.INVALID_REQUEST)
        assert admin.describe_client_quotas() == {}
        return
    while bob not in admin.describe_client_quotas():
        pass  # the broker that we ask learns of it a moment later
    assert admin.describe_client_quotas([QuotaFilter("user", "h-bob")]) == {bob: {"producer_byte_rate": 1024.0}}
    assert bob in admin.describe_client_quotas([QuotaFilter("user", any_name=True)])
    admin.alter_client_quotas({bob: {"producer_byte_rate": None}}).check()
    while bob in admin.describe_client_quotas():
        pass


def test_access_rules() -> None:
    with (
        Broker(
            {"authorizer.class.name": "kafka.security.authorizer.AclAuthorizer", "super.users": "User:ANONYMOUS"}
        ) as broker,
        Admin(broker.bootstrap) as admin,
    ):
        entry = Entry("User:a", "*", Operation.READ, Permission.ALLOW)
        rules = [Binding(ResourcePattern(ResourceKind.TOPIC, name), entry) for name in ("i-one", "i-two")]
        assert set(admin.create_acls(rules).check()) == set(rules)
        assert admin.describe_acls() == rules
        one = Filter(ResourceKind.TOPIC, "i-one")
        assert admin.describe_acls(one) == rules[:1]
        assert admin.delete_acls([one])[one] == rules[:1]
        assert admin.describe_acls() == rules[1:]
