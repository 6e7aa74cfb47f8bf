"""A change of a consumer group that is larger than message.max.bytes is in the log as a whole, also after a kill."""

from __future__ import annotations

from pathlib import Path

from ixion.broker.coordinators.group.consumer.group import ConsumerGroup
from ixion.broker.startup.broker import Broker as RealBroker
from ixion.language.protocol.messages.k37_create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from ixion.language.protocol.messages.k68_consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from ixion.language.protocol.registry import ApiKey
from ixion.testing import Broker
from tests.apis.raw import Raw

MEMBERS = 30
SETTINGS = {
    "message.max.bytes": 3_000,
    "offsets.topic.num.partitions": 1,
    "group.consumer.assignment.interval.ms": 0,
    "group.consumer.min.assignment.interval.ms": 0,
}


def beat(raw: Raw, number: int, epoch: int) -> int:
    request = ConsumerGroupHeartbeatRequest(
        group_id="g",
        member_id=f"{number:x<200}",
        member_epoch=epoch,
        rebalance_timeout_ms=60_000,
        subscribed_topic_names=("t",),
        topic_partitions=() if epoch == 0 else None,
    )
    answer = raw.ask(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, request)
    assert answer.error_code == 0, answer
    reached: int = answer.member_epoch
    return reached


async def targets(real: RealBroker) -> list[int]:
    """The partitions in the targets of all members, once the group is loaded."""
    shard = real.parts.groups.get().shards.at(0)
    assert shard is not None
    assert not shard.loading
    group = shard.groups["g"]
    assert isinstance(group, ConsumerGroup)
    assert group.assignment_epoch == group.epoch
    return sorted(number for target in group.targets.values() for numbers in target.values() for number in numbers)


async def largest_batch(real: RealBroker) -> int:
    topic = real.parts.internal_topics["__consumer_offsets"]
    return max(int(batch.size_in_bytes) for batch in topic.read(0))


def test_all_targets_survive_a_kill(tmp_path: Path) -> None:
    broker = Broker(SETTINGS, data=tmp_path)
    broker.start()
    broker.create_topic("t", 1)
    broker.call(lambda real: real.parts.internal_topics["__consumer_offsets"].ensure())
    with Raw(broker.bootstrap) as raw:
        epoch = 0
        for number in range(MEMBERS):
            epoch = beat(raw, number, 0)
        wish = CreatePartitionsTopic(name="t", count=MEMBERS, assignments=None)
        grow = CreatePartitionsRequest(topics=(wish,), timeout_ms=20_000, validate_only=False)
        (grown,) = raw.ask(ApiKey.CREATE_PARTITIONS, 3, grow).results
        assert grown.error_code == 0
        while beat(raw, MEMBERS - 1, epoch) == epoch:
            pass
    assert broker.call(targets) == list(range(MEMBERS))
    assert broker.call(largest_batch) > MEMBERS * 200
    broker.kill()
    with Broker(SETTINGS, data=tmp_path) as again:
        assert again.call(targets) == list(range(MEMBERS))
