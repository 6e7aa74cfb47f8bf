"""Random requests of every area, with ids and numbers that are sometimes wrong.

An area draws steps from what the history has made so far: topics with their partitions, groups, members, producers.
Names are drawn, too, so no placement of a name by a hash is lucky for long.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any, Final

from ixion.language.protocol.messages.k01_fetch import FetchPartition, FetchRequest, FetchTopic
from ixion.language.protocol.messages.k02_list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from ixion.language.protocol.messages.k03_metadata import MetadataRequest, MetadataRequestTopic
from ixion.language.protocol.messages.k09_offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from ixion.language.protocol.messages.k10_find_coordinator import FindCoordinatorRequest
from ixion.language.protocol.messages.k12_heartbeat import HeartbeatRequest
from ixion.language.protocol.messages.k13_leave_group import LeaveGroupRequest, MemberIdentity
from ixion.language.protocol.messages.k14_sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from ixion.language.protocol.messages.k15_describe_groups import DescribeGroupsRequest
from ixion.language.protocol.messages.k16_list_groups import ListGroupsRequest
from ixion.language.protocol.messages.k19_create_topics import CreatableTopic, CreatableTopicConfig, CreateTopicsRequest
from ixion.language.protocol.messages.k20_delete_topics import DeleteTopicsRequest
from ixion.language.protocol.messages.k21_delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from ixion.language.protocol.messages.k22_init_producer_id import InitProducerIdRequest
from ixion.language.protocol.messages.k24_add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from ixion.language.protocol.messages.k25_add_offsets_to_txn import AddOffsetsToTxnRequest
from ixion.language.protocol.messages.k26_end_txn import EndTxnRequest
from ixion.language.protocol.messages.k28_txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from ixion.language.protocol.messages.k32_describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from ixion.language.protocol.messages.k37_create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from ixion.language.protocol.messages.k42_delete_groups import DeleteGroupsRequest
from ixion.language.protocol.messages.k44_incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from ixion.language.protocol.messages.k47_offset_delete import (
    OffsetDeleteRequest,
    OffsetDeleteRequestPartition,
    OffsetDeleteRequestTopic,
)
from ixion.language.protocol.messages.k65_describe_transactions import DescribeTransactionsRequest
from ixion.language.protocol.messages.k68_consumer_group_heartbeat import ConsumerGroupHeartbeatRequest
from ixion.language.protocol.messages.k69_consumer_group_describe import ConsumerGroupDescribeRequest
from ixion.language.protocol.registry import ApiKey
from tests.apis.group_kit import commit_request, join_request
from tests.apis.txn_kit import batch, produce_request
from tests.differential.side import Side
from tests.differential.step import Step

SETTINGS: Final = {
    "retention.ms": ("1000", "-1", "-2", "x"),
    "cleanup.policy": ("compact", "delete", "compact,delete", "burn", ""),
    "segment.bytes": ("1048576", "2097152", "13"),
    "max.message.bytes": ("1000", "-1"),
    "min.insync.replicas": ("1", "0"),
    "compression.type": ("lz4", "producer", "best"),
    "message.timestamp.type": ("LogAppendTime", "CreateTime", "Never"),
    "message.timestamp.after.max.ms": ("3600000", "-1"),
    "local.retention.ms": ("-2", "1000", "-3"),
    "local.retention.bytes": ("-2", "-3"),
    "unclean.leader.election.enable": ("true", "perhaps"),
    "no.such.setting": ("1",),
}
ONLY_CHECKED: Final = {"segment.bytes": ("1000",)}  # accepted by one broker, so nothing is made with it
DESCRIBED: Final = (
    *("cleanup.policy", "compression.type", "max.message.bytes", "message.timestamp.after.max.ms"),
    *("message.timestamp.before.max.ms", "retention.ms", "retention.bytes", "segment.ms", "min.insync.replicas"),
    *("leader.replication.throttled.replicas", "follower.replication.throttled.replicas", "delete.retention.ms"),
    *("message.timestamp.type", "unclean.leader.election.enable", "index.interval.bytes", "file.delete.delay.ms"),
)
TOPIC: Final = 2  # types of resources
GROUP_COORDINATOR, TRANSACTION_COORDINATOR = 0, 1


class History:
    """What exists by now, as far as the history knows; both brokers have the same."""

    def __init__(self, drawn: random.Random, now_ms: int) -> None:
        self.drawn = drawn
        self.now_ms = now_ms
        self.topics: dict[str, int] = {}  # with their partitions
        self.nowhere = self.name("n")  # a topic that is never made
        self.groups = [self.name("g") for _ in range(6)]
        self.consumer_groups = [self.name("c") for _ in range(4)]
        self.ids = [self.name("x") for _ in range(4)]
        self.members: dict[str, list[str]] = {}  # by group: labels
        self.sequences: dict[tuple[str, str, int], int] = {}
        self.count = 0

    def name(self, prefix: str) -> str:
        return f"{prefix}{self.drawn.getrandbits(40):x}"

    def label(self, prefix: str) -> str:
        self.count += 1
        return f"{prefix}#{self.count}"

    def topic(self, *, may_be_missing: bool = True) -> str:
        known = list(self.topics)
        if not known or (may_be_missing and self.chance(0.08)):
            return self.nowhere
        return self.drawn.choice(known)

    def partition(self, topic: str) -> int:
        count = self.topics.get(topic, 1)
        return count if self.chance(0.05) else self.drawn.randrange(count)

    def chance(self, share: float) -> bool:
        return self.drawn.random() < share

    def any_group(self) -> str:
        return self.drawn.choice([*self.groups, *self.consumer_groups])

    def step(self) -> Step:
        area = self.drawn.choices(AREAS, [weight for weight, _ in WEIGHED])[0]
        return area(self)


def create_topic(h: History) -> Step:
    name = h.drawn.choice(
        [h.name("t"), h.name("t"), h.name("t"), "", "a b", "." * 2, "n" * 250, next(iter(h.topics), "t")]
    )
    partitions = h.drawn.choice([1, 2, 3, 3, 0, -1])
    replicas = h.drawn.choice([1, 1, 1, 1, -1, 0, 2])
    chosen = h.drawn.sample(sorted(SETTINGS), h.drawn.choice([0, 0, 1, 1, 2]))
    configs = tuple(CreatableTopicConfig(name=each, value=h.drawn.choice(SETTINGS[each])) for each in chosen)
    topic = CreatableTopic(
        name=name, num_partitions=partitions, replication_factor=replicas, assignments=(), configs=configs
    )
    check_only = h.chance(0.1)

    def after(side: Side, answer: Any) -> None:
        (result,) = answer.topics
        if result.error_code == 0 and not check_only:
            count = 1 if partitions == -1 else partitions
            h.topics[name] = count
            side.keep(f"id of {name}", result.topic_id)
            side.await_topic(name, count)

    request = CreateTopicsRequest(topics=(topic,), timeout_ms=20_000, validate_only=check_only)
    return Step(key=ApiKey.CREATE_TOPICS, version=7, make=lambda _: request, after=after)


def delete_topic(h: History) -> Step:
    name = h.topic()
    h.topics.pop(name, None)
    request = DeleteTopicsRequest(topic_names=(name,), timeout_ms=20_000)

    def after(side: Side, _answer: Any) -> None:
        side.await_topic(name, 0)

    return Step(key=ApiKey.DELETE_TOPICS, version=5, make=lambda _: request, after=after)


def add_partitions(h: History) -> Step:
    name = h.topic()
    count = h.topics.get(name, 1) + h.drawn.choice([1, 2, 0, -1])
    topic = CreatePartitionsTopic(name=name, count=count, assignments=None)
    request = CreatePartitionsRequest(topics=(topic,), timeout_ms=20_000, validate_only=False)

    def after(side: Side, answer: Any) -> None:
        if answer.results[0].error_code == 0:
            h.topics[name] = count
            side.await_topic(name, count)

    return Step(key=ApiKey.CREATE_PARTITIONS, version=3, make=lambda _: request, after=after)


def describe_configs(h: History) -> Step:
    resource = DescribeConfigsResource(resource_type=TOPIC, resource_name=h.topic(), configuration_keys=DESCRIBED)
    request = DescribeConfigsRequest(resources=(resource,))
    return Step(key=ApiKey.DESCRIBE_CONFIGS, version=h.drawn.choice([1, 3, 4]), make=lambda _: request)


def alter_configs(h: History) -> Step:
    name = h.drawn.choice(sorted(SETTINGS))
    config = AlterableConfig(
        name=name,
        config_operation=h.drawn.choice([0, 0, 0, 1, 2, 3]),
        value=h.drawn.choice((*SETTINGS[name], *ONLY_CHECKED.get(name, ()))),
    )
    resource = AlterConfigsResource(resource_type=TOPIC, resource_name=h.topic(), configs=(config,))
    request = IncrementalAlterConfigsRequest(resources=(resource,), validate_only=True)
    return Step(key=ApiKey.INCREMENTAL_ALTER_CONFIGS, version=1, make=lambda _: request)


def metadata(h: History) -> Step:
    names = list(dict.fromkeys(h.topic() for _ in range(h.drawn.choice([1, 1, 2]))))
    by_id = [h.chance(0.4) for _ in names]
    version = h.drawn.choice([8, 10, 11, 12, 13])

    def make(side: Side) -> MetadataRequest:
        topics = []
        for name, id_only in zip(names, by_id, strict=True):
            known = side.values.get(f"id of {name}")
            if id_only and known is not None and version >= 10:
                topics.append(MetadataRequestTopic(name=None if version >= 12 else name, topic_id=known))
            else:
                topics.append(MetadataRequestTopic(name=name))
        return MetadataRequest(topics=tuple(topics), allow_auto_topic_creation=False)

    return Step(key=ApiKey.METADATA, version=version, make=make)


def find_coordinators(h: History) -> Step:
    keys = [h.any_group() for _ in range(h.drawn.choice([1, 2, 3]))]
    if h.chance(0.3):
        keys.append(keys[0])
    kind = h.drawn.choice([0, 1, 7])
    request = FindCoordinatorRequest(key_type=kind, coordinator_keys=tuple(keys))
    return Step(key=ApiKey.FIND_COORDINATOR, version=4, make=lambda _: request)


# Records.


def produce(h: History) -> Step:
    topic = h.topic()
    number = h.partition(topic)
    known = [label for label in h.ids if ("producer", label, 0) in h.sequences]
    label = h.drawn.choice(known) if known and h.chance(0.8) else ""
    place = (label, topic, number)
    sequence = h.sequences.get(place, 0)
    if h.chance(0.15):
        sequence += h.drawn.choice([-1, 1, 2])
    lag = h.drawn.choice([0, 0, 0, 0, 0, 1]) if label else 0
    # The first write of a transaction is added to it, so a transactional id is part of the request.
    stamp = h.now_ms + h.drawn.choice([0, 0, 0, -1_000, 7_200_000, 1_000_000])

    def make(side: Side) -> Any:
        if not label:
            data = batch(-1, -1, -1, transactional=False, timestamp_ms=stamp)
        else:
            producer_id, epoch = side[label]
            data = batch(producer_id, epoch - lag, max(sequence, 0), timestamp_ms=stamp)
        return produce_request(label or None, data, number=number, topic=topic)

    def after(_side: Side, answer: Any) -> None:
        if answer.responses[0].partition_responses[0].error_code == 0 and label:
            h.sequences[place] = max(sequence, 0) + 1

    return Step(key=ApiKey.PRODUCE, version=h.drawn.choice([9, 11, 12]), make=make, after=after)


def fetch(h: History) -> Step:
    topic = h.topic()
    part = FetchPartition(
        partition=h.partition(topic), fetch_offset=h.drawn.choice([0, 0, 1, 2, 50, -1]), partition_max_bytes=1 << 20
    )
    request = FetchRequest(
        max_wait_ms=0,
        min_bytes=0,
        isolation_level=h.drawn.choice([0, 1]),
        topics=(FetchTopic(topic=topic, partitions=(part,)),),
        forgotten_topics_data=(),
    )
    return Step(key=ApiKey.FETCH, version=12, make=lambda _: request)


def list_offsets(h: History) -> Step:
    topic = h.topic()
    stamp = h.drawn.choice([-1, -2, -3, h.now_ms, h.now_ms + 10**9])
    part = ListOffsetsPartition(partition_index=h.partition(topic), timestamp=stamp)
    request = ListOffsetsRequest(
        replica_id=-1,
        isolation_level=h.drawn.choice([0, 1]),
        topics=(ListOffsetsTopic(name=topic, partitions=(part,)),),
    )
    return Step(key=ApiKey.LIST_OFFSETS, version=h.drawn.choice([5, 7, 8]), make=lambda _: request)


def delete_records(h: History) -> Step:
    topic = h.topic()
    part = DeleteRecordsPartition(partition_index=h.partition(topic), offset=h.drawn.choice([0, 1, -1, 100, -2]))
    request = DeleteRecordsRequest(topics=(DeleteRecordsTopic(name=topic, partitions=(part,)),), timeout_ms=20_000)
    return Step(key=ApiKey.DELETE_RECORDS, version=2, make=lambda _: request)


# Groups.


def join(h: History) -> Step:
    """Alone in its group, so that nobody waits for anybody."""
    group = h.drawn.choice([*h.groups, *h.groups, h.any_group()])
    known = h.members.setdefault(group, [])
    label = known[0] if known else h.label("member")
    kind = h.drawn.choice(["consumer", "consumer", "consumer", "other", ""])

    def make(side: Side) -> Any:
        return join_request(group, side.values.get(label, ""), protocol_type=kind)

    def after(side: Side, answer: Any) -> None:
        if answer.member_id and answer.error_code in (0, 79):
            side.keep(label, answer.member_id)
            side.values[f"generation of {label}"] = answer.generation_id
            if label not in known:
                known.append(label)

    return Step(key=ApiKey.JOIN_GROUP, version=h.drawn.choice([3, 5, 7, 9]), make=make, after=after)


def of_member(h: History, make: Callable[[Side, str, str, int], Any], key: ApiKey, *versions: int) -> Step:
    """A request of a member, which may have left, with its generation, or another one."""
    group = h.any_group()
    known = h.members.get(group, [])
    label = h.drawn.choice(known) if known else "nobody"
    wrong = h.drawn.choice([0, 0, 0, 0, 1, -1])

    def made(side: Side) -> Any:
        generation = side.values.get(f"generation of {label}", 1) + wrong
        return make(side, group, side.values.get(label, "nobody"), generation)

    return Step(key=key, version=h.drawn.choice(versions), make=made)


def sync(h: History) -> Step:
    def make(_side: Side, group: str, member: str, generation: int) -> Any:
        given = (SyncGroupRequestAssignment(member_id=member, assignment=b"all"),)
        return SyncGroupRequest(group_id=group, generation_id=generation, member_id=member, assignments=given)

    return of_member(h, make, ApiKey.SYNC_GROUP, 2, 3, 4)


def heartbeat(h: History) -> Step:
    def make(_side: Side, group: str, member: str, generation: int) -> Any:
        return HeartbeatRequest(group_id=group, generation_id=generation, member_id=member)

    return of_member(h, make, ApiKey.HEARTBEAT, 2, 4)


def leave(h: History) -> Step:
    return of_member(
        h,
        lambda _side, group, member, _: LeaveGroupRequest(
            group_id=group, members=(MemberIdentity(member_id=member), MemberIdentity(member_id="nobody"))
        ),
        ApiKey.LEAVE_GROUP,
        4,
        5,
    )


def commit(h: History) -> Step:
    topic, offset = h.topic(), h.drawn.randrange(100)
    alone = h.chance(0.3)
    text = h.drawn.choice(["", "x", "y" * 4_097])

    def make(_side: Side, group: str, member: str, generation: int) -> Any:
        given = {} if alone else {"member_id": member, "generation_id_or_member_epoch": generation}
        return commit_request(group, {(topic, 0): offset}, metadata=text, **given)

    return of_member(h, make, ApiKey.OFFSET_COMMIT, 7, 8, 9)


def offset_fetch(h: History) -> Step:
    topics = None if h.chance(0.5) else (OffsetFetchRequestTopics(name=h.topic(), partition_indexes=(0, 1)),)
    group = OffsetFetchRequestGroup(group_id=h.any_group(), topics=topics)
    request = OffsetFetchRequest(groups=(group,), require_stable=h.chance(0.5))
    return Step(key=ApiKey.OFFSET_FETCH, version=8, make=lambda _: request)


def offset_delete(h: History) -> Step:
    part = OffsetDeleteRequestPartition(partition_index=0)
    topic = OffsetDeleteRequestTopic(name=h.topic(), partitions=(part,))
    request = OffsetDeleteRequest(group_id=h.any_group(), topics=(topic,))
    return Step(key=ApiKey.OFFSET_DELETE, version=0, make=lambda _: request)


def describe_group(h: History) -> Step:
    request = DescribeGroupsRequest(groups=(h.any_group(),), include_authorized_operations=False)
    return Step(key=ApiKey.DESCRIBE_GROUPS, version=h.drawn.choice([4, 5, 6]), make=lambda _: request)


def describe_consumer_group(h: History) -> Step:
    request = ConsumerGroupDescribeRequest(group_ids=(h.any_group(),), include_authorized_operations=False)
    return Step(key=ApiKey.CONSUMER_GROUP_DESCRIBE, version=0, make=lambda _: request)


def list_groups(h: History) -> Step:
    request = ListGroupsRequest(states_filter=h.drawn.choice([(), ("Empty",), ("stable",)]), types_filter=())
    return Step(key=ApiKey.LIST_GROUPS, version=5, make=lambda _: request)


def delete_group(h: History) -> Step:
    group = h.any_group()
    request = DeleteGroupsRequest(groups_names=(group,))

    def after(_side: Side, answer: Any) -> None:
        if answer.results[0].error_code == 0:
            h.members.pop(group, None)

    return Step(key=ApiKey.DELETE_GROUPS, version=2, make=lambda _: request, after=after)


def consumer_heartbeat(h: History) -> Step:
    """A member joins, stays or leaves; in a classic group, too, which may be upgraded by it."""
    group = h.drawn.choice([*h.consumer_groups, *h.consumer_groups, h.any_group(), " ", ""])
    member = f"m{h.drawn.randrange(3)}"
    epoch = h.drawn.choice([0, 0, None, None, None, None, -1, -2, 99])
    topics = tuple(h.topic() for _ in range(h.drawn.choice([1, 1, 2])))
    regex = h.drawn.choice([None, None, None, None, "", "[", "(?=a)b"])
    more = {"instance_id": h.drawn.choice([None, None, None, "i", " "])}

    def make(side: Side) -> Any:
        known = side.values.get(f"epoch of {group} {member}", 0)
        sent = known if epoch is None else epoch
        given: dict[str, Any] = dict(more)
        if sent == 0:
            given |= {"rebalance_timeout_ms": 60_000, "topic_partitions": ()}
            given |= {"subscribed_topic_names": topics} if regex is None else {"subscribed_topic_regex": regex}
        return ConsumerGroupHeartbeatRequest(group_id=group, member_id=member, member_epoch=sent, **given)

    def after(side: Side, answer: Any) -> None:
        if answer.error_code == 0:
            side.values[f"epoch of {group} {member}"] = max(answer.member_epoch, 0)

    return Step(key=ApiKey.CONSUMER_GROUP_HEARTBEAT, version=1, make=make, after=after)


# Transactions.


def init_producer(h: History) -> Step:
    label = h.drawn.choice(h.ids)
    name = h.drawn.choice([label] * 9 + [""])
    timeout_ms = h.drawn.choice([600_000] * 9 + [0, 2**31 - 1])

    def after(side: Side, answer: Any) -> None:
        if answer.error_code == 0:
            side.values[label] = answer.producer_id, answer.producer_epoch
            side.keep(f"producer id of {label}", answer.producer_id)
            h.sequences["producer", label, 0] = 0
            for place in [each for each in h.sequences if each[0] == label]:
                del h.sequences[place]

    request = InitProducerIdRequest(
        transactional_id=name, transaction_timeout_ms=timeout_ms, producer_id=-1, producer_epoch=-1
    )
    return Step(key=ApiKey.INIT_PRODUCER_ID, version=h.drawn.choice([3, 4, 5]), make=lambda _: request, after=after)


def of_producer(h: History, make: Callable[[str, int, int], Any], key: ApiKey, *versions: int) -> Step:
    label = h.drawn.choice(h.ids)
    wrong = h.drawn.choice([0, 0, 0, 0, 0, 1, -1])

    def made(side: Side) -> Any:
        producer_id, epoch = side.values.get(label, (4_711, 0))
        return make(label, producer_id, max(epoch + wrong, 0))

    def after(side: Side, answer: Any) -> None:
        if key is ApiKey.END_TXN:
            if answer.error_code == 0 and answer.producer_epoch >= 0:
                side.values[label] = answer.producer_id, answer.producer_epoch
                for place in [each for each in h.sequences if each[0] == label]:
                    h.sequences[place] = 0
            side.await_ended(label)

    return Step(key=key, version=h.drawn.choice(versions), make=made, after=after)


def add_to_transaction(h: History) -> Step:
    topic = h.topic()
    topics = (AddPartitionsToTxnTopic(name=topic, partitions=(h.partition(topic),)),)
    return of_producer(
        h,
        lambda name, producer_id, epoch: AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=name,
            v3_and_below_producer_id=producer_id,
            v3_and_below_producer_epoch=epoch,
            v3_and_below_topics=topics,
        ),
        ApiKey.ADD_PARTITIONS_TO_TXN,
        3,
    )


def add_offsets(h: History) -> Step:
    group = h.any_group()
    return of_producer(
        h,
        lambda name, producer_id, epoch: AddOffsetsToTxnRequest(
            transactional_id=name, producer_id=producer_id, producer_epoch=epoch, group_id=group
        ),
        ApiKey.ADD_OFFSETS_TO_TXN,
        3,
    )


def txn_commit(h: History) -> Step:
    group, topic, offset = h.any_group(), h.topic(), h.drawn.randrange(100)
    part = TxnOffsetCommitRequestPartition(partition_index=0, committed_offset=offset, committed_metadata="")
    return of_producer(
        h,
        lambda name, producer_id, epoch: TxnOffsetCommitRequest(
            transactional_id=name,
            group_id=group,
            producer_id=producer_id,
            producer_epoch=epoch,
            topics=(TxnOffsetCommitRequestTopic(name=topic, partitions=(part,)),),
        ),
        ApiKey.TXN_OFFSET_COMMIT,
        3,
        5,
    )


def end_transaction(h: History) -> Step:
    committed = h.chance(0.6)
    return of_producer(
        h,
        lambda name, producer_id, epoch: EndTxnRequest(
            transactional_id=name, producer_id=producer_id, producer_epoch=epoch, committed=committed
        ),
        ApiKey.END_TXN,
        3,
        5,
    )


def describe_transaction(h: History) -> Step:
    request = DescribeTransactionsRequest(transactional_ids=(h.drawn.choice([*h.ids, "unknown", ""]),))
    return Step(key=ApiKey.DESCRIBE_TRANSACTIONS, version=0, make=lambda _: request)


WEIGHED: Final[list[tuple[int, Callable[[History], Step]]]] = [
    *((6, create_topic), (1, delete_topic), (2, add_partitions), (4, describe_configs), (5, alter_configs)),
    *((5, metadata), (2, find_coordinators), (12, produce), (6, fetch), (5, list_offsets), (3, delete_records)),
    *((9, join), (6, sync), (5, heartbeat), (3, leave), (8, commit), (5, offset_fetch), (3, offset_delete)),
    *((3, describe_group), (2, describe_consumer_group), (2, list_groups), (2, delete_group)),
    *((14, consumer_heartbeat), (4, init_producer), (4, add_to_transaction), (3, add_offsets), (4, txn_commit)),
    *((5, end_transaction), (3, describe_transaction)),
]
AREAS: Final = [area for _, area in WEIGHED]
