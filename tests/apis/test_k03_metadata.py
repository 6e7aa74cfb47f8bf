from __future__ import annotations

import pytest

from ixion.broker.metadata.image import PartitionImage, TopicImage
from ixion.broker.startup.broker import Broker as RealBroker
from ixion.language.model.errors import ErrorCode
from ixion.language.model.ids import ZERO_ID
from ixion.language.protocol.messages.k03_metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseTopic,
)
from ixion.language.protocol.registry import ApiKey
from ixion.testing.broker import Broker
from tests.apis.asking import Asking, versions


def wanted(
    *names: str | None,
    ids: tuple[bytes, ...] = (),
    create: bool = False,
    of_topics: bool = False,
    of_cluster: bool = False,
) -> MetadataRequest:
    topics = [MetadataRequestTopic(name=name) for name in names]
    topics += [MetadataRequestTopic(topic_id=topic_id, name=None) for topic_id in ids]
    return MetadataRequest(
        topics=tuple(topics),
        allow_auto_topic_creation=create,
        include_topic_authorized_operations=of_topics,
        include_cluster_authorized_operations=of_cluster,
    )


def ask(asking: Asking, *names: str | None, version: int = 13, create: bool = False) -> list[MetadataResponseTopic]:
    return list(asking.ask(wanted(*names, create=create), MetadataResponse, version).topics)


def topic_names(broker: Broker) -> set[str]:
    async def look(real: RealBroker) -> set[str]:
        return set(real.parts.image.topics)

    return broker.call(look)


def image_of(broker: Broker, name: str) -> TopicImage:
    async def look(real: RealBroker) -> TopicImage:
        return real.parts.image.topics[name]

    return broker.call(look)


@pytest.fixture(scope="module", autouse=True)
def known(broker: Broker) -> str:
    broker.create_topic("known", 3)
    return "known"


def test_every_version(broker: Broker, asking: Asking, known: str) -> None:
    host, _, port = broker.bootstrap.rpartition(":")
    image = image_of(broker, known)
    for version in versions(ApiKey.METADATA):
        answer = asking.ask(wanted(known, create=version < 4), MetadataResponse, version)
        ((node),) = answer.brokers
        assert (node.host, node.port, node.rack) == (host, int(port), None)
        assert answer.controller_id == (node.node_id if version >= 1 else -1)
        assert bool(answer.cluster_id) is (version >= 2)
        (topic,) = answer.topics
        assert (topic.error_code, topic.name, topic.is_internal) == (0, known, False)
        assert topic.topic_id == (image.topic_id if version >= 10 else ZERO_ID)
        assert [part.partition_index for part in topic.partitions] == [0, 1, 2]
        for part in topic.partitions:
            assert (part.error_code, part.leader_id, part.replica_nodes, part.isr_nodes, part.offline_replicas) == (
                0,
                node.node_id,
                (node.node_id,),
                (node.node_id,),
                (),
            )
            assert part.leader_epoch == (0 if version >= 7 else -1)


def test_all_topics(broker: Broker, asking: Asking) -> None:
    """Nothing in version 0, null in later ones; nothing means none there."""
    expected = topic_names(broker)
    assert {topic.name for topic in ask(asking, version=0, create=True)} == expected
    for version in range(1, 14):
        request = MetadataRequest(topics=None)
        assert {topic.name for topic in asking.ask(request, MetadataResponse, version).topics} == expected
        assert ask(asking, version=version, create=version < 4) == []


def test_by_id(broker: Broker, asking: Asking, known: str) -> None:
    topic_id = image_of(broker, known).topic_id
    for version in (12, 13):
        answer = asking.ask(wanted(ids=(topic_id, b"x" * 16)), MetadataResponse, version)
        good, bad = answer.topics
        assert (good.error_code, good.name, good.topic_id) == (0, known, topic_id)
        assert (bad.error_code, bad.name, bad.topic_id) == (ErrorCode.UNKNOWN_TOPIC_ID, None, b"x" * 16)


def test_a_missing_topic_is_not_made_unless_asked_for(broker: Broker, asking: Asking) -> None:
    (topic,) = ask(asking, "missing")
    assert (topic.error_code, topic.name, topic.partitions) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "missing", ())
    assert "missing" not in topic_names(broker)


@pytest.mark.parametrize("version", [0, 1, 3, 4, 9, 13])
def test_a_missing_topic_is_made_and_there_in_the_same_answer(broker: Broker, asking: Asking, version: int) -> None:
    (topic,) = ask(asking, f"made{version}", version=version, create=True)
    assert topic.error_code == 0
    assert [(part.error_code, part.leader_id) for part in topic.partitions] == [(0, ask_leader(broker))]


def ask_leader(broker: Broker) -> int:
    async def look(real: RealBroker) -> int:
        return real.parts.node_id

    return broker.call(look)


def test_making_topics_can_be_forbidden() -> None:
    settings = {"auto.create.topics.enable": False}
    with Broker(settings) as broker, Asking(broker.bootstrap) as asking:
        (topic,) = ask(asking, "missing", create=True)
        assert topic.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert topic_names(broker) == set()


def test_topics_are_made_as_the_settings_say() -> None:
    with Broker({"num.partitions": 4}) as broker, Asking(broker.bootstrap) as asking:
        (topic,) = ask(asking, "t", create=True)
        assert len(topic.partitions) == 4


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a b", "ü", "x" * 250, "a\0b"])
@pytest.mark.parametrize("create", [False, True])
def test_names_that_cannot_be(broker: Broker, asking: Asking, name: str, create: bool) -> None:
    good, bad = ask(asking, "known", name, create=create)
    assert (good.error_code, bad.error_code) == (0, ErrorCode.INVALID_TOPIC_EXCEPTION)
    assert name not in topic_names(broker)


def test_a_name_that_collides_with_another(asking: Asking) -> None:
    assert ask(asking, "dot.ted", create=True)[0].error_code == 0
    assert ask(asking, "dot_ted", create=True)[0].error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


def test_internal_topics_are_created_when_a_client_asks_for_them(asking: Asking) -> None:
    (topic,) = ask(asking, "__consumer_offsets", create=True)
    assert (topic.error_code, topic.is_internal, len(topic.partitions)) == (0, True, 1)


def test_the_same_name_twice(asking: Asking) -> None:
    assert [topic.error_code for topic in ask(asking, "twice", "twice", create=True)] == [0]


@pytest.mark.parametrize("version", [10, 11])
def test_a_topic_without_a_name_before_ids_were_allowed(asking: Asking, known: str, version: int) -> None:
    """The whole request is refused."""
    found = ask(asking, known, None, version=version)
    assert [topic.error_code for topic in found] == [ErrorCode.INVALID_REQUEST] * 2


def test_authorised_operations(asking: Asking, known: str) -> None:
    for version in range(8, 14):
        answer = asking.ask(wanted(known, of_topics=True, of_cluster=version <= 10), MetadataResponse, version)
        assert answer.topics[0].topic_authorized_operations > 0
        assert (answer.cluster_authorized_operations > 0) is (version <= 10)
        answer = asking.ask(wanted(known), MetadataResponse, version)
        assert answer.topics[0].topic_authorized_operations == -(2**31)
        assert answer.cluster_authorized_operations == -(2**31)


def test_each_listener_tells_its_own_address() -> None:
    settings = {
        "listeners": "PLAINTEXT://127.0.0.1:0,OTHER://127.0.0.1:0",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,OTHER:PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
        "advertised.listeners": "PLAINTEXT://127.0.0.1:0,OTHER://other.example:1234",
    }
    with Broker(settings) as broker:

        async def ports(real: RealBroker) -> dict[str, int]:
            return {endpoint.name: endpoint.port for endpoint in real.endpoints}

        found = broker.call(ports)
        with Asking(f"127.0.0.1:{found['OTHER']}") as asking:
            answer = asking.ask(wanted(), MetadataResponse)
            assert [(node.host, node.port) for node in answer.brokers] == [("other.example", 1234)]
        with Asking(f"127.0.0.1:{found['PLAINTEXT']}") as asking:
            answer = asking.ask(wanted(), MetadataResponse)
            assert [(node.host, node.port) for node in answer.brokers] == [("127.0.0.1", found["PLAINTEXT"])]


@pytest.mark.parametrize(
    ("leader", "code"), [(-1, ErrorCode.LEADER_NOT_AVAILABLE), (77, ErrorCode.LEADER_NOT_AVAILABLE)]
)
def test_a_partition_whose_leader_is_gone(asking: Asking, broker: Broker, leader: int, code: ErrorCode) -> None:
    """Also one that the image has not noticed yet."""
    name = f"orphan{leader}"

    async def put(real: RealBroker) -> None:
        partition = PartitionImage(number=0, leader=leader, leader_epoch=3, isr=(77,), replicas=(77,), offline=(77,))
        real.parts.image.put_topic(
            TopicImage(name=name, topic_id=name.encode().ljust(16), partitions=[partition], config={})
        )

    broker.call(put)
    (topic,) = ask(asking, name)
    (part,) = topic.partitions
    assert (topic.error_code, part.error_code, part.leader_id, part.offline_replicas) == (0, code, -1, (77,))


def test_a_topic_that_is_named_ten_thousand_times_is_answered_once(broker: Broker, asking: Asking) -> None:
    broker.create_topic("often", 50)
    topic_id = (
        asking.ask(MetadataRequest(topics=(MetadataRequestTopic(name="often"),)), MetadataResponse).topics[0].topic_id
    )
    by_name = [MetadataRequestTopic(name="often")] * 10_000
    by_id = [MetadataRequestTopic(name=f"{number}", topic_id=topic_id) for number in range(10_000)]
    for topics in (by_name, by_id):
        answer = asking.ask(MetadataRequest(topics=tuple(topics)), MetadataResponse)
        assert [(topic.name, len(topic.partitions)) for topic in answer.topics] == [("often", 50)]
