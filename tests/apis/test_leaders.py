"""Which leader an answer NOT_LEADER_OR_FOLLOWER names (KIP-951), while a controller moves the leadership."""

from __future__ import annotations

from ixion.broker.apis.leaders import leader_of
from ixion.broker.startup.broker import Broker as RealBroker
from ixion.testing.broker import Broker


def test_a_broker_names_the_new_leader_from_the_moment_that_it_resigns(broker: Broker) -> None:
    broker.create_topic("t", 1)

    async def story(running: RealBroker) -> None:
        image, replicas = running.parts.image, running.parts.replicas
        topic = image.topics["t"]
        own = replicas.node_id
        named = [leader_of(image, replicas, "t", 0)]
        # An operation that waits completes while the listeners of a leadership are called.
        replicas.on_leadership.append(lambda *_: named.append(leader_of(image, replicas, "t", 0)))
        replicas.follow("t", 0, topic.topic_id, own + 1, 7, (own + 1,), (own, own + 1), 1)
        replicas.on_leadership.pop()
        assert named == [(own, 0), (own + 1, 7)], "UpdateMetadata has not come yet"

    broker.call(story)


def test_a_broker_that_leads_no_more_does_not_name_itself(broker: Broker) -> None:
    broker.create_topic("u", 1)

    async def story(running: RealBroker) -> None:
        image, replicas = running.parts.image, running.parts.replicas
        replicas.partitions["u", 0].leads = False  # it stops, and no other leader is known
        assert leader_of(image, replicas, "u", 0) == (-1, -1)
        assert leader_of(image, replicas, "none", 0) == (-1, -1)

    broker.call(story)
