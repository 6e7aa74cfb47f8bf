"""Checks of requests of members of streams groups. Each raises KafkaError, whose message goes to the client."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from ixion.broker.coordinators.group.consumer.rules import JOIN, LEAVE_FOR_A_WHILE, is_blank
from ixion.broker.coordinators.group.streams.group import StreamsGroup
from ixion.broker.coordinators.group.streams.member import StreamsMember
from ixion.broker.coordinators.group.streams.tasks import Numbers, Tasks, numbers_of
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.model.topic_partition import TopicPartition
from ixion.language.protocol.messages.k88_streams_group_heartbeat import StreamsGroupHeartbeatRequest
from ixion.timer.turns import Steps

LONGEST_ID: Final = 255  # characters of a member id, which is a UUID as text
MOST_TAGS: Final = 100
MOST_TASK_ENTRIES: Final = 60_000  # subtopologies and partitions that a member reports


def check_request(request: StreamsGroupHeartbeatRequest) -> None:
    """The checks that need no group."""

    def need(holds: bool, message: str) -> None:
        if not holds:
            raise KafkaError(ErrorCode.INVALID_REQUEST, message)

    epoch = request.member_epoch
    tasks = (request.active_tasks, request.standby_tasks, request.warmup_tasks)
    need(not is_blank(request.group_id), "the group id is empty")
    need(not is_blank(request.member_id), "the member id is empty")
    need(len(request.member_id) <= LONGEST_ID, f"a member id has at most {LONGEST_ID} characters")
    need(not is_blank(request.instance_id), "the instance id is empty; a member without one sends null")
    need(not is_blank(request.rack_id), "the rack id is empty; a member without one sends null")
    need(epoch >= LEAVE_FOR_A_WHILE, f"{epoch} is not a member epoch")
    need(len(request.client_tags or ()) <= MOST_TAGS, f"a member has at most {MOST_TAGS} tags")
    need(
        not request.task_offsets and not request.task_end_offsets, "offsets of tasks are not supported, as in Kafka 4.3"
    )
    need(not request.warmup_tasks, "warm-up tasks are not supported, as in Kafka 4.3")
    if epoch == JOIN:
        need(request.rebalance_timeout_ms != -1, "a member that joins must name a rebalance timeout")
        need(not any(tasks), "a member that joins must have no tasks")
        need(request.topology is not None, "a member that joins must send its topology")
    else:
        need(request.topology is None, "only a member that joins may send a topology")
    if epoch == LEAVE_FOR_A_WHILE:
        need(request.instance_id is not None, "only a static member, with an instance id, can leave temporarily")
    given = [kind is not None for kind in tasks]
    need(all(given) or not any(given), "active, standby and warm-up tasks must be sent together")


def owned_tasks(request: StreamsGroupHeartbeatRequest) -> Steps[Tasks | None]:
    """What the member reports to have; None if it reports nothing."""
    if request.active_tasks is None:
        return None
    kinds: list[Numbers] = []
    count = 0
    for kind in (request.active_tasks, request.standby_tasks or (), request.warmup_tasks or ()):
        for each in kind:
            count += 1 + len(each.partitions)
            yield
        if count > MOST_TASK_ENTRIES:
            raise KafkaError(ErrorCode.INVALID_REQUEST, f"a member reports at most {MOST_TASK_ENTRIES} tasks")
        kinds.append(numbers_of(kind))
        yield
    return Tasks(*kinds)


def check_tasks(tasks: Mapping[str, int], owned: Tasks) -> None:
    """KafkaError if the topology, which has so many tasks by subtopology, has not all of these."""
    for kind in owned:
        for subtopology, numbers in kind.items():
            count = tasks.get(subtopology)
            if count is None:
                raise KafkaError(ErrorCode.INVALID_REQUEST, f"the topology has no subtopology {subtopology}")
            if min(numbers) < 0 or max(numbers) >= count:
                raise KafkaError(
                    ErrorCode.INVALID_REQUEST, f"subtopology {subtopology} has {count} tasks, not task {max(numbers)}"
                )


def check_epoch(member: StreamsMember, epoch: int, owned: Tasks | None) -> None:
    """The member is at the epoch that we know, or one behind because our last answer was lost."""
    if epoch == member.epoch:
        return
    if epoch == member.current.previous_epoch and owned is not None and member.current.assigned.contains(owned):
        return
    raise KafkaError(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"member {member.member_id} is at epoch {member.epoch}, not {epoch}: it must give up its tasks and join again",
    )


def find_member(group: StreamsGroup, member_id: str, instance_id: str | None) -> StreamsMember:
    """The member, found by its instance id if there is one."""
    if instance_id is None:
        member = group.members.get(member_id)
        if member is None:
            raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"group {group.group_id} has no member {member_id}")
        return member
    member = group.static_member(instance_id)
    if member is None:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"group {group.group_id} has no member of instance {instance_id}")
    if member.member_id != member_id:
        raise KafkaError(
            ErrorCode.FENCED_INSTANCE_ID,
            f"instance {instance_id} is now member {member.member_id}, which replaced {member_id}",
        )
    return member


def no_streams_group(group_id: str) -> KafkaError:
    return KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a streams group.")


def check_offset_use(
    group: StreamsGroup, member_id: str, epoch: int, partitions: Iterable[TopicPartition] | None = None
) -> ErrorCode:
    """For an OffsetFetch that names a member, or for a commit of these partitions.

    A commit may name an older epoch if the member has had the tasks that read all of the partitions since then.
    """
    member = group.members.get(member_id)
    if member is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    if epoch == member.epoch:
        return ErrorCode.NONE
    if partitions is not None and epoch < member.epoch:
        current = member.current
        if all(
            any(
                (given := current.held_since((reader, number))) is not None and given <= epoch
                for reader in group.readers_of(topic)
            )
            for topic, number in partitions
        ):
            return ErrorCode.NONE
    return ErrorCode.STALE_MEMBER_EPOCH
