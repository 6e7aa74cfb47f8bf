"""Requests about groups, and their answers as lines that are the same for every broker that behaves the same.

Use it for a new step of `group_script`, which compares ixion with Apache Kafka; to test one API key, use `group_kit`.
Member ids that a broker draws are shown by the order in which they came, topic ids as names. The broker has TOPIC,
group.initial.rebalance.delay.ms=0, group.max.size=3 and group.consumer.assignment.interval.ms=0.
"""

from __future__ import annotations

import time
from typing import Any

from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.messages.k09_offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from ixion.language.protocol.messages.k11_join_group import JoinGroupRequestProtocol
from ixion.language.protocol.messages.k12_heartbeat import HeartbeatRequest
from ixion.language.protocol.messages.k13_leave_group import LeaveGroupRequest, MemberIdentity
from ixion.language.protocol.messages.k14_sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from ixion.language.protocol.messages.k15_describe_groups import DescribeGroupsRequest
from ixion.language.protocol.messages.k16_list_groups import ListGroupsRequest
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
from ixion.language.protocol.messages.k68_consumer_group_heartbeat import ConsumerGroupHeartbeatRequest, TopicPartitions
from ixion.language.protocol.messages.k69_consumer_group_describe import ConsumerGroupDescribeRequest
from ixion.language.protocol.registry import ApiKey
from tests.apis.group_kit import commit_request, join_request
from tests.apis.raw import Raw

TOPIC = "read"  # of four partitions
HUGE = 2**31 - 1


def name_of(code: int) -> str:
    return ErrorCode(code).name


class Talk:
    def __init__(self, raw: Raw, topic_id: bytes) -> None:
        self.raw = raw
        self.topic_id = topic_id
        self.said: list[str] = []
        self.names: dict[str, str] = {"": "-"}
        self.changes = 0  # of settings

    def note(self, what: str, outcome: object) -> None:
        self.said.append(f"{what}: {outcome}")

    def who(self, member_id: str | None) -> str:
        if member_id is None:
            return "none"
        return self.names.setdefault(member_id, f"m{len(self.names)}")

    def join(self, group: str, version: int, *, wait: bool = True, label: str = "", **fields: Any) -> Any:
        names = fields.pop("names", None)
        if names is not None:
            fields["protocols"] = tuple(JoinGroupRequestProtocol(name=name, metadata=b"x") for name in names)
        self.raw.send(ApiKey.JOIN_GROUP, version, join_request(group, **fields))
        return self.joined(group, f"join {group} v{version} {label}") if wait else None

    def joined(self, group: str, what: str, *, leader_may_differ: bool = False) -> Any:
        answer = self.raw.answer()
        if leader_may_differ:
            self.note(what, (name_of(answer.error_code), answer.generation_id, self.who(answer.member_id)))
            return answer
        members = [(self.who(each.member_id), each.group_instance_id, each.metadata) for each in answer.members]
        told = (
            name_of(answer.error_code),
            answer.generation_id,
            answer.protocol_type,
            answer.protocol_name,
            self.who(answer.leader),
            answer.skip_assignment,
            self.who(answer.member_id),
            sorted(members),
        )
        self.note(what, told)
        return answer

    def enter(self, group: str, version: int, **fields: Any) -> Any:
        """In as many steps as the version takes."""
        answer = self.join(group, version, **fields)
        if answer.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            answer = self.join(group, version, member_id=answer.member_id, **fields)
        return answer

    def sync(self, group: str, member_id: str, generation: int, version: int = 5, **fields: Any) -> None:
        given = fields.pop("given", {})
        label = dict(fields)
        if version >= 5:
            fields = {"protocol_type": "consumer", "protocol_name": "range", **fields}
        request = SyncGroupRequest(
            group_id=group,
            generation_id=generation,
            member_id=member_id,
            assignments=tuple(SyncGroupRequestAssignment(member_id=k, assignment=v) for k, v in given.items()),
            **fields,
        )
        answer = self.raw.ask(ApiKey.SYNC_GROUP, version, request)
        told = name_of(answer.error_code), answer.protocol_type, answer.protocol_name, answer.assignment
        self.note(f"sync {group} {self.who(member_id)} {generation} v{version} {label}", told)

    def heartbeat(self, group: str, member_id: str, generation: int, instance: str | None = None) -> None:
        request = HeartbeatRequest(
            group_id=group, generation_id=generation, member_id=member_id, group_instance_id=instance
        )
        code = self.raw.ask(ApiKey.HEARTBEAT, 4, request).error_code
        self.note(f"heartbeat {group} {self.who(member_id)} {generation} {instance}", name_of(code))

    def leave(self, group: str, version: int, *leaving: tuple[str, str | None]) -> None:
        if version < 3:
            request = LeaveGroupRequest(group_id=group, member_id=leaving[0][0])
        else:
            members = [
                MemberIdentity(member_id=member_id, group_instance_id=instance, reason="done")
                for member_id, instance in leaving
            ]
            request = LeaveGroupRequest(group_id=group, members=tuple(members))
        answer = self.raw.ask(ApiKey.LEAVE_GROUP, version, request)
        told = [(self.who(each.member_id), each.group_instance_id, name_of(each.error_code)) for each in answer.members]
        self.note(f"leave {group} v{version} {len(leaving)}", (name_of(answer.error_code), told))

    def commit(
        self, group: str, member_id: str = "", generation: int = -1, version: int = 9, number: int = 0, **fields: Any
    ) -> None:
        partitions = fields.pop("partitions", (number,))
        topic = fields.pop("topic", TOPIC)
        offset = fields.pop("offset", 7)
        label = {name: value if len(str(value)) < 30 else "long" for name, value in fields.items()}
        body = commit_request(
            group,
            {(topic, each): offset for each in partitions},
            member_id=member_id,
            generation_id_or_member_epoch=generation,
            **fields,
        )
        answer = self.raw.ask(ApiKey.OFFSET_COMMIT, version, body)
        codes = sorted((each.partition_index, name_of(each.error_code)) for each in answer.topics[0].partitions)
        self.note(f"commit {group} {self.who(member_id)} {generation} v{version} {topic} {partitions} {label}", codes)

    def fetch(self, group: str, member_id: str | None = None, epoch: int = -1, version: int = 9) -> None:
        topics = (OffsetFetchRequestTopics(name=TOPIC, partition_indexes=(0, 1, 9)),)
        one = OffsetFetchRequestGroup(group_id=group, member_id=member_id, member_epoch=epoch, topics=topics)
        (answer,) = self.raw.ask(ApiKey.OFFSET_FETCH, version, OffsetFetchRequest(groups=(one,))).groups
        found = [
            (each.partition_index, each.committed_offset, each.metadata, name_of(each.error_code))
            for topic in answer.topics
            for each in topic.partitions
        ]
        self.note(f"fetch {group} {self.who(member_id)} {epoch} v{version}", (name_of(answer.error_code), found))

    def describe(self, group: str, version: int = 6) -> None:
        request = DescribeGroupsRequest(groups=(group,), include_authorized_operations=False)
        (found,) = self.raw.ask(ApiKey.DESCRIBE_GROUPS, version, request).groups
        members = [(self.who(each.member_id), each.group_instance_id, each.member_assignment) for each in found.members]
        told = name_of(found.error_code), found.group_state, found.protocol_type, found.protocol_data, sorted(members)
        self.note(f"describe {group} v{version}", told)

    def list(self, *states: str, types: tuple[str, ...] = ()) -> None:
        answer = self.raw.ask(ApiKey.LIST_GROUPS, 5, ListGroupsRequest(states_filter=states, types_filter=types))
        told = sorted((each.group_id, each.protocol_type, each.group_state, each.group_type) for each in answer.groups)
        self.note(f"list {states} {types}", (name_of(answer.error_code), told))

    def delete(self, *groups: str) -> None:
        answer = self.raw.ask(ApiKey.DELETE_GROUPS, 2, DeleteGroupsRequest(groups_names=groups))
        self.note(f"delete {groups}", sorted((each.group_id, name_of(each.error_code)) for each in answer.results))

    def delete_offsets(self, group: str, topic: str, *numbers: int) -> None:
        partitions = tuple(OffsetDeleteRequestPartition(partition_index=each) for each in numbers)
        request = OffsetDeleteRequest(
            group_id=group, topics=(OffsetDeleteRequestTopic(name=topic, partitions=partitions),)
        )
        answer = self.raw.ask(ApiKey.OFFSET_DELETE, 0, request)
        codes = [(each.partition_index, name_of(each.error_code)) for one in answer.topics for each in one.partitions]
        self.note(f"forget {group} {topic} {numbers}", (name_of(answer.error_code), sorted(codes)))

    def beat(self, group: str, member_id: str, epoch: int, version: int = 1, **fields: Any) -> Any:
        """`owns` are partitions of TOPIC."""
        owns = fields.pop("owns", None)
        label = {name: value if len(str(value)) < 100 else "long" for name, value in fields.items()}
        if owns is not None:
            topics = (TopicPartitions(topic_id=self.topic_id, partitions=tuple(owns)),) if owns else ()
            fields["topic_partitions"] = topics
        request = ConsumerGroupHeartbeatRequest(group_id=group, member_id=member_id, member_epoch=epoch, **fields)
        answer = self.raw.ask(ApiKey.CONSUMER_GROUP_HEARTBEAT, version, request)
        given = None if answer.assignment is None else [list(e.partitions) for e in answer.assignment.topic_partitions]
        told = name_of(answer.error_code), self.who(answer.member_id), answer.member_epoch, given
        self.note(f"beat {group} {member_id or '-'} {epoch} v{version} {owns} {label}", told)
        return answer

    def first_beat(self, group: str, member_id: str, **fields: Any) -> Any:
        given = {"rebalance_timeout_ms": 30_000, "subscribed_topic_names": (TOPIC,), "owns": (), **fields}
        return self.beat(group, member_id, 0, **given)

    def settle(self, group: str, member_id: str, epoch: int, **fields: Any) -> None:
        """Heartbeats until the member is at the epoch, of which nothing is noted: Kafka resolves patterns later on."""
        for _ in range(200):
            request = ConsumerGroupHeartbeatRequest(group_id=group, member_id=member_id, **fields)
            answer = self.raw.ask(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, request)
            if answer.error_code or answer.member_epoch >= epoch:
                break
            fields = {"member_epoch": answer.member_epoch}
            time.sleep(0.01)
        self.note(f"settle {group} {member_id}", (name_of(answer.error_code), answer.member_epoch))

    def describe_consumers(self, group: str) -> None:
        request = ConsumerGroupDescribeRequest(group_ids=(group,), include_authorized_operations=False)
        (found,) = self.raw.ask(ApiKey.CONSUMER_GROUP_DESCRIBE, 1, request).groups
        members = [
            (
                self.who(each.member_id),
                each.member_epoch,
                [sorted(part.partitions) for part in each.assignment.topic_partitions],
                [sorted(part.partitions) for part in each.target_assignment.topic_partitions],
                (each.member_type, each.instance_id, each.rack_id, each.client_id, each.client_host),
                (each.subscribed_topic_names, each.subscribed_topic_regex),
            )
            for each in found.members
        ]
        epochs = found.group_epoch, found.assignment_epoch
        told = found.group_state, *epochs, found.assignor_name, sorted(members)
        self.note(f"consumers {group}", (name_of(found.error_code), told))

    def set_interval(self, group: str, value: str) -> None:
        """How long an assignment of the group is in force at least.

        Kafka takes settings over some time after it has answered. So by the same request another group is given a new
        heartbeat interval, and a member of that one repeats its request until it gets the answer.
        """
        self.changes += 1
        heartbeat_ms = 5_000 + self.changes
        wanted = {group: ("assignment", value), "probe": ("heartbeat", str(heartbeat_ms))}
        resources = tuple(
            AlterConfigsResource(
                resource_type=32,
                resource_name=name,
                configs=(AlterableConfig(name=f"consumer.{what}.interval.ms", config_operation=0, value=each),),
            )
            for name, (what, each) in wanted.items()
        )
        request = IncrementalAlterConfigsRequest(resources=resources, validate_only=False)
        answer = self.raw.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, request)
        codes = {each.resource_name: name_of(each.error_code) for each in answer.responses}
        self.note(f"interval {group} {value}", codes)
        probe = ConsumerGroupHeartbeatRequest(
            group_id="probe",
            member_id="a",
            member_epoch=0,
            rebalance_timeout_ms=1_000,
            subscribed_topic_names=(),
            topic_partitions=(),
        )
        while self.raw.ask(ApiKey.CONSUMER_GROUP_HEARTBEAT, 1, probe).heartbeat_interval_ms != heartbeat_ms:
            time.sleep(0.01)


def describe(raw: Raw, group: str) -> Any:
    request = DescribeGroupsRequest(groups=(group,), include_authorized_operations=False)
    return raw.ask(ApiKey.DESCRIBE_GROUPS, 5, request).groups[0]
