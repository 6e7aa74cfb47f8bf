"""Three Python admin clients, each with what it can do: librdkafka's, kafka-python's and aiokafka's."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Iterator

import pytest
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.admin import NewPartitions as AioPartitions
from aiokafka.admin import NewTopic as AioTopic
from aiokafka.admin.config_resource import ConfigResource as AioResource
from aiokafka.admin.config_resource import ConfigResourceType as AioResourceType
from aiokafka.errors import TopicAlreadyExistsError as AioTopicAlreadyExistsError
from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicCollection, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import AlterConfigOpType, ConfigEntry, ConfigResource, ConfigSource
from confluent_kafka.admin._listoffsets import OffsetSpec
from confluent_kafka.admin._resource import ResourceType
from confluent_kafka.cimpl import NewPartitions, NewTopic

from ixion.testing import Broker
from tests.apis.filling import fill

with warnings.catch_warnings():  # kafka-python reads its tables in a way that Python 3.11 does not like
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka import TopicPartition as KafkaPartition
    from kafka.admin import ConfigResource as KafkaResource
    from kafka.admin import ConfigResourceType as KafkaResourceType
    from kafka.admin import KafkaAdminClient
    from kafka.admin import NewPartitions as KafkaPartitions
    from kafka.admin import NewTopic as KafkaTopic
    from kafka.errors import InvalidConfigurationError, TopicAlreadyExistsError


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    place = tmp_path_factory.mktemp("data")
    settings = {"broker.id": 5, "log.dirs": f"{place / 'one'},{place / 'two'}", "log.retention.ms": 604_800_000}
    with Broker(settings) as running:
        yield running


# librdkafka


@pytest.fixture
def confluent(broker: Broker) -> AdminClient:
    return AdminClient({"bootstrap.servers": broker.bootstrap})


def code_of(error: pytest.ExceptionInfo[KafkaException]) -> int:
    return int(error.value.args[0].code())


def test_confluent_topics(broker: Broker, confluent: AdminClient) -> None:
    wanted = [NewTopic("c", 2, 1, config={"retention.ms": "1000"}), NewTopic("c-bad", 0, 1), NewTopic("c-far", 1, 3)]
    made = confluent.create_topics(wanted, request_timeout=20)
    assert made["c"].result(20) is None
    for name, code in (("c-bad", KafkaError.INVALID_PARTITIONS), ("c-far", KafkaError.INVALID_REPLICATION_FACTOR)):
        with pytest.raises(KafkaException) as refused:
            made[name].result(20)
        assert code_of(refused) == code
    with pytest.raises(KafkaException) as again:
        confluent.create_topics([NewTopic("c", 2, 1)])["c"].result(20)
    assert code_of(again) == KafkaError.TOPIC_ALREADY_EXISTS
    assert confluent.create_topics([NewTopic("c-check", 1, 1)], validate_only=True)["c-check"].result(20) is None

    confluent.create_partitions([NewPartitions("c", 3)])["c"].result(20)
    listed = confluent.list_topics(timeout=20).topics
    assert "c-check" not in listed
    assert len(listed["c"].partitions) == 3
    described = confluent.describe_topics(TopicCollection(["c"]), include_authorized_operations=True)["c"].result(20)
    assert [partition.leader.id for partition in described.partitions] == [5, 5, 5]
    assert len(described.authorized_operations) == 8
    cluster = confluent.describe_cluster(include_authorized_operations=True).result(20)
    assert cluster.controller.id == 5
    assert len(cluster.cluster_id) == 22

    fill(broker.bootstrap, "c")
    low = confluent.delete_records([TopicPartition("c", 0, 4)])[TopicPartition("c", 0)].result(20)
    assert low.low_watermark == 4
    wish = {TopicPartition("c", 0): OffsetSpec.earliest()}  # type: ignore[no-untyped-call]
    found = confluent.list_offsets(wish, isolation_level=IsolationLevel.READ_UNCOMMITTED)
    assert found[TopicPartition("c", 0)].result(20).offset == 4

    confluent.delete_topics(["c"])["c"].result(20)
    with pytest.raises(KafkaException) as gone:
        confluent.delete_topics(["c"])["c"].result(20)
    assert code_of(gone) == KafkaError.UNKNOWN_TOPIC_OR_PART


def test_confluent_settings(broker: Broker, confluent: AdminClient) -> None:
    broker.create_topic("cs")

    def setting(kind: ResourceType, name: str, key: str) -> ConfigEntry:
        resource = ConfigResource(kind, name)
        found: ConfigEntry = confluent.describe_configs([resource])[resource].result(20)[key]
        return found

    def change(*entries: ConfigEntry) -> None:
        resource = ConfigResource(ResourceType.TOPIC, "cs", incremental_configs=list(entries))
        confluent.incremental_alter_configs([resource])[resource].result(20)

    change(
        ConfigEntry("cleanup.policy", "compact", incremental_operation=AlterConfigOpType.APPEND),
        ConfigEntry("retention.ms", "10000", incremental_operation=AlterConfigOpType.SET),
    )
    policy = setting(ResourceType.TOPIC, "cs", "cleanup.policy")
    assert policy.value == "delete,compact"
    assert ConfigSource(policy.source) is ConfigSource.DYNAMIC_TOPIC_CONFIG
    assert setting(ResourceType.TOPIC, "cs", "retention.ms").value == "10000"
    change(ConfigEntry("retention.ms", None, incremental_operation=AlterConfigOpType.DELETE))
    assert setting(ResourceType.TOPIC, "cs", "retention.ms").value == "604800000"
    with pytest.raises(KafkaException) as wrong:
        change(ConfigEntry("retentoin.ms", "1", incremental_operation=AlterConfigOpType.SET))
    assert code_of(wrong) == KafkaError.INVALID_CONFIG
    assert "did you mean 'retention.ms'?" in str(wrong.value)
    identity = setting(ResourceType.BROKER, "5", "broker.id")
    assert (identity.value, identity.is_read_only) == ("5", True)


def test_confluent_replaces_settings(broker: Broker, confluent: AdminClient) -> None:
    broker.create_topic("cr", retention_ms=5)
    resource = ConfigResource(ResourceType.TOPIC, "cr", set_config={"segment.ms": "77"})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it is a deprecated call, and that is what is tested
        confluent.alter_configs([resource])[resource].result(20)
    found = confluent.describe_configs([ConfigResource(ResourceType.TOPIC, "cr")])
    (entries,) = [each.result(20) for each in found.values()]
    assert (entries["segment.ms"].value, entries["retention.ms"].value) == ("77", "604800000")


# kafka-python


@pytest.fixture
def kafka_python(broker: Broker) -> Iterator[KafkaAdminClient]:
    client = KafkaAdminClient(bootstrap_servers=broker.bootstrap)
    yield client
    client.close()


def test_kafka_python_topics(broker: Broker, kafka_python: KafkaAdminClient) -> None:
    made = kafka_python.create_topics([KafkaTopic("k", 2, 1, topic_configs={"retention.ms": "1000"})])
    (topic,) = made["topics"]
    assert (topic["error_code"], topic["num_partitions"], topic["replication_factor"]) == (0, 2, 1)
    assert topic["configs"]["retention.ms"]["value"] == "1000"
    assert topic["configs"]["retention.ms"]["config_source"] == "DYNAMIC_TOPIC_CONFIG"
    with pytest.raises(TopicAlreadyExistsError):
        kafka_python.create_topics([KafkaTopic("k", 2, 1)])
    kafka_python.create_partitions({"k": KafkaPartitions(3)})
    assert "k" in kafka_python.list_topics()
    (described,) = kafka_python.describe_topics(["k"])
    assert [each["leader_id"] for each in described["partitions"]] == [5, 5, 5]
    (paged,) = kafka_python.describe_topic_partitions(["k"])["topics"]
    assert [each["isr_nodes"] for each in paged["partitions"]] == [[5], [5], [5]]
    cluster = kafka_python.describe_cluster()
    assert cluster["controller_id"] == 5
    assert "ALTER" in cluster["authorized_operations"]

    fill(broker.bootstrap, "k")
    partition = KafkaPartition("k", 0)
    assert kafka_python.delete_records({partition: 3})[partition]["low_watermark"] == 3
    elected = kafka_python.elect_leaders(0, {"k": [0]})
    assert elected.replica_election_results[0].partition_result[0].error_code == 84  # not needed
    assert kafka_python.list_partition_reassignments() == {}
    (gone,) = kafka_python.delete_topics(["k"])["topics"]
    assert (gone["name"], gone["error_code"]) == ("k", 0)


def test_kafka_python_settings(broker: Broker, kafka_python: KafkaAdminClient) -> None:
    broker.create_topic("ks")

    def modified() -> dict[str, str]:
        found = kafka_python.describe_configs([KafkaResource(KafkaResourceType.TOPIC, "ks")])["topic"]["ks"]
        own = "DYNAMIC_TOPIC_CONFIG"
        return {name: entry["value"] for name, entry in found.items() if entry["config_source"] == own}

    wish = KafkaResource(KafkaResourceType.TOPIC, "ks", {"retention.ms": "5000", "segment.ms": "99"})
    assert kafka_python.alter_configs([wish]) == {"topic": {"ks": "OK"}}
    assert modified() == {"retention.ms": "5000", "segment.ms": "99"}
    kafka_python.reset_configs([KafkaResource(KafkaResourceType.TOPIC, "ks", ["segment.ms"])])
    assert modified() == {"retention.ms": "5000"}
    wrong = KafkaResource(KafkaResourceType.TOPIC, "ks", {"retention.ms": "soon"})
    try:
        answer = kafka_python.alter_configs([wrong])["topic"]["ks"]
    except InvalidConfigurationError as error:
        answer = str(error)
    assert "soon" in answer
    listed = kafka_python.list_config_resources()
    assert listed["broker"] == ["5"]
    assert "ks" in listed["topic"]


def test_kafka_python_sees_the_cluster(broker: Broker, kafka_python: KafkaAdminClient) -> None:
    broker.create_topic("kd", 2)
    (told,) = kafka_python.describe_log_dirs()
    sizes = {
        (place["log_dir"], each["partition_index"])
        for place in told["log_dirs"]
        for topic in place["topics"]
        if topic["name"] == "kd"
        for each in topic["partitions"]
    }
    assert told["broker"] == 5
    assert len(sizes) == 2
    assert all(place["total_bytes"] >= place["usable_bytes"] > 0 for place in told["log_dirs"])
    assert kafka_python.describe_features()["metadata.version"]["finalized"] == (30, 30)
    (quorum,) = kafka_python.describe_metadata_quorum()["topics"][0]["partitions"]
    assert quorum["leader_id"] == 5
    assert str(kafka_python.get_broker_version_data(5)) == "<BrokerVersionData 4.3>"


# aiokafka


def test_aiokafka(broker: Broker) -> None:
    async def run() -> None:
        admin = AIOKafkaAdminClient(bootstrap_servers=broker.bootstrap)
        await admin.start()
        try:
            made = await admin.create_topics([AioTopic("a", 2, 1, topic_configs={"retention.ms": "1000"})])
            assert [(name, code) for name, code, *_ in made.topic_errors] == [("a", 0)]
            again = await admin.create_topics([AioTopic("a", 2, 1)])
            assert again.topic_errors[0][1] == AioTopicAlreadyExistsError.errno
            await admin.create_partitions({"a": AioPartitions(3)})
            assert "a" in await admin.list_topics()
            (described,) = await admin.describe_topics(["a"])
            assert [each["leader"] for each in described["partitions"]] == [5, 5, 5]
            cluster = await admin.describe_cluster()
            assert cluster["controller_id"] == 5
            wish = AioResource(AioResourceType.TOPIC, "a", configs={"segment.ms": "77"})
            (altered,) = await admin.alter_configs([wish])
            assert altered.resources[0][0] == 0
            (found,) = await admin.describe_configs([AioResource(AioResourceType.TOPIC, "a")])
            settings = {entry[0]: entry[1] for entry in found.resources[0][4]}
            assert (settings["segment.ms"], settings["retention.ms"]) == ("77", "604800000")
            gone = await admin.delete_topics(["a"])
            assert list(gone.topic_error_codes) == [("a", 0)]
        finally:
            await admin.close()

    asyncio.run(run())
