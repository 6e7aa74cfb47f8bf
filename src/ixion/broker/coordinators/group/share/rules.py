"""Checks of requests of share group members. Each raises KafkaError, whose message goes to the client."""

from __future__ import annotations

from typing import Final

from ixion.broker.coordinators.group.bounds import check_topics
from ixion.broker.coordinators.group.consumer.rules import JOIN, LEAVE, is_blank
from ixion.broker.coordinators.group.share.group import ShareGroup, ShareMember
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.protocol.messages.k76_share_group_heartbeat import ShareGroupHeartbeatRequest

LONGEST_ID: Final = 36  # characters of a member id, which is a UUID as text


def check_request(request: ShareGroupHeartbeatRequest) -> None:
    """The checks that need no group."""

    def need(holds: bool, message: str) -> None:
        if not holds:
            raise KafkaError(ErrorCode.INVALID_REQUEST, message)

    need(not is_blank(request.group_id), "the group id is empty")
    need(not is_blank(request.member_id), "the member id is empty")
    need(len(request.member_id) <= LONGEST_ID, f"a member id has at most {LONGEST_ID} characters")
    need(not is_blank(request.rack_id), "the rack id is empty; a member without one sends null")
    need(request.member_epoch >= LEAVE, f"{request.member_epoch} is not a member epoch")
    if request.member_epoch == JOIN:
        need(bool(request.subscribed_topic_names), "a member that joins must subscribe to topics")
    check_topics(len(request.subscribed_topic_names or ()))


def no_share_group(group_id: str) -> KafkaError:
    return KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a share group.")


def find_member(group: ShareGroup, member_id: str) -> ShareMember:
    member = group.members.get(member_id)
    if member is None:
        raise KafkaError(ErrorCode.UNKNOWN_MEMBER_ID, f"group {group.group_id} has no member {member_id}")
    return member


def check_epoch(member: ShareMember, epoch: int) -> None:
    """The member is at the epoch that we know, or one behind because our last answer was lost."""
    if epoch not in (member.epoch, member.previous_epoch):
        raise KafkaError(
            ErrorCode.FENCED_MEMBER_EPOCH,
            f"member {member.member_id} is at epoch {member.epoch}, not {epoch}; it must join again",
        )
