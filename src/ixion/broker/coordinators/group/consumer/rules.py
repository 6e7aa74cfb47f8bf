"""Checks of requests of consumer group members. Each raises KafkaError, whose message goes to the client."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final

from ixion.broker.coordinators.group.consumer.assignment import Assignment, contains
from ixion.broker.coordinators.group.consumer.group import ConsumerGroup
from ixion.broker.coordinators.group.consumer.member import ConsumerMember
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.protocol.messages.k68_consumer_group_heartbeat import ConsumerGroupHeartbeatRequest

JOIN: Final = 0  # member epochs with a meaning of their own
LEAVE: Final = -1
LEAVE_FOR_A_WHILE: Final = -2  # a static member that will return: its partitions are kept

BLANKS: Final = "".join(map(chr, range(33)))
MEMBER_NAMES_ITSELF_FROM: Final = 1  # version of the request


def check_request(request: ConsumerGroupHeartbeatRequest, version: int, assignors: Sequence[str]) -> None:
    """The checks that need no group."""

    def need(holds: bool, message: str) -> None:
        if not holds:
            raise KafkaError(ErrorCode.INVALID_REQUEST, message)

    epoch = request.member_epoch
    need(not is_blank(request.group_id), "the group id is empty")
    need(not is_blank(request.instance_id), "the instance id is empty; a member without one sends null")
    need(not is_blank(request.rack_id), "the rack id is empty; a member without one sends null")
    need(epoch >= LEAVE_FOR_A_WHILE, f"{epoch} is not a member epoch")
    if epoch != JOIN or version >= MEMBER_NAMES_ITSELF_FROM:
        need(not is_blank(request.member_id), "the member id is empty")
    if epoch == JOIN and request.rebalance_timeout_ms == -1 and request.topic_partitions is None:
        # It sends only what has changed, so it believes that it is a member. librdkafka 2 does so when a member leaves
        # and joins again within a millisecond. INVALID_REQUEST, which Kafka answers, ends that client for good; after
        # this code it joins again and sends everything.
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, "a member that joins must send all, not only what has changed")
    if epoch == JOIN:
        need(request.rebalance_timeout_ms != -1, "a member that joins must name a rebalance timeout")
        need(request.topic_partitions == (), "a member that joins must send an empty list of partitions")
        subscribed = request.subscribed_topic_names is not None or request.subscribed_topic_regex is not None
        need(subscribed, "a member that joins must subscribe to topics, by name or by pattern")
    if epoch == LEAVE_FOR_A_WHILE:
        need(request.instance_id is not None, "only a static member, with an instance id, can leave temporarily")
    assignor = request.server_assignor
    if assignor is not None and assignor not in assignors:
        supported = ", ".join(assignors)
        raise KafkaError(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"unknown assignor {assignor!r}; supported: {supported}",
        )


def is_blank(text: str | None) -> bool:
    """Empty, or only blanks and control characters, as Java's `trim` leaves it. Null is not blank."""
    return text is not None and not text.strip(BLANKS)


def check_epoch(member: ConsumerMember, epoch: int, owned: Assignment | None) -> None:
    """The member is at the epoch that we know, or one behind because our last answer was lost."""
    known = member.epoch
    if epoch == known:
        return
    if epoch == member.current.previous_epoch and owned is not None and contains(member.current.assigned, owned):
        return
    raise KafkaError(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"member {member.member_id} is at epoch {known}, not {epoch}: it has lost its partitions and must join again",
    )


def find_member(group: ConsumerGroup, member_id: str, instance_id: str | None) -> ConsumerMember:
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


def check_offset_use(
    group: ConsumerGroup, member_id: str, epoch: int, partitions: Iterable[tuple[bytes, int]] | None = None
) -> ErrorCode:
    """For an OffsetFetch that names a member, or for an OffsetCommit of these partitions.

    A fetch names the member's epoch. So does a commit, or it names an older one if the member has had all of the
    partitions since then (KIP-1251): a concurrent heartbeat may have moved the member on while the commit was under
    way.
    """
    member = group.members.get(member_id)
    if member is None:
        return ErrorCode.UNKNOWN_MEMBER_ID
    if epoch == member.epoch:
        return ErrorCode.NONE
    if partitions is not None and epoch < member.epoch:
        since = [member.current.held_since(*partition) for partition in partitions]
        if all(given is not None and given <= epoch for given in since):
            return ErrorCode.NONE
    return ErrorCode.ILLEGAL_GENERATION if member.is_classic else ErrorCode.STALE_MEMBER_EPOCH
