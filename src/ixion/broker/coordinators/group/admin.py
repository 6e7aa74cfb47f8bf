"""Groups as administrators see them: list, describe, delete."""

from __future__ import annotations

from collections.abc import Callable, Collection

from ixion.broker.coordinators.group.classic.group import CONSUMER, ClassicGroup
from ixion.broker.coordinators.group.classic.rebalance import Rebalance
from ixion.broker.coordinators.group.classic.states import DEAD, EMPTY, STABLE
from ixion.broker.coordinators.group.consumer.group import ConsumerGroup
from ixion.broker.coordinators.group.consumer.states import ConsumerGroupState
from ixion.broker.coordinators.group.consumer_protocol import ConsumerProtocol
from ixion.broker.coordinators.group.shard import Group
from ixion.broker.coordinators.group.shards import Shards
from ixion.broker.coordinators.group.share.group import ShareGroup, ShareGroupState
from ixion.broker.coordinators.group.share_protocol import ShareProtocol
from ixion.broker.coordinators.group.stored_offsets import StoredOffsets
from ixion.broker.coordinators.group.streams.group import StreamsGroup
from ixion.broker.coordinators.group.streams.states import StreamsGroupState
from ixion.broker.coordinators.group.streams_protocol import StreamsProtocol
from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.messages.k15_describe_groups import DescribedGroup, DescribedGroupMember
from ixion.language.protocol.messages.k16_list_groups import ListedGroup
from ixion.timer.turns import Steps

CLASSIC_TYPE = "classic"
CONSUMER_TYPE = "consumer"
SHARE_TYPE = "share"  # and the protocol type
STREAMS_TYPE = "streams"  # and the protocol type
GONE = frozenset({DEAD, ConsumerGroupState.DEAD, ShareGroupState.DEAD, StreamsGroupState.DEAD})
WITHOUT_MEMBERS = frozenset({EMPTY, ConsumerGroupState.EMPTY, ShareGroupState.EMPTY, StreamsGroupState.EMPTY})


class Admin:
    def __init__(
        self,
        shards: Shards,
        rebalance: Rebalance,
        consumer: ConsumerProtocol,
        share: ShareProtocol,
        streams: StreamsProtocol,
        offsets: StoredOffsets,
    ) -> None:
        self._shards = shards
        self._rebalance = rebalance
        self._consumer = consumer
        self._share = share
        self._streams = streams
        self._offsets = offsets

    def list(self, states: Collection[str], types: Collection[str]) -> Steps[tuple[ErrorCode, tuple[ListedGroup, ...]]]:
        """An empty filter matches every group. Filters ignore case."""
        wanted_states = {state.lower() for state in states}
        wanted_types = {kind.lower() for kind in types}
        code = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if self._shards.is_loading else ErrorCode.NONE
        chosen: list[ListedGroup] = []
        for shard in self._shards:
            for group in [] if shard.loading else list(shard.groups.values()):
                each = listed(group)
                if (not wanted_states or each.group_state.lower() in wanted_states) and (
                    not wanted_types or each.group_type in wanted_types
                ):
                    chosen.append(each)
                yield
        return code, tuple(chosen)

    def describe(self, group_id: str) -> Steps[DescribedGroup]:
        shard = self._shards.find(group_id)
        if isinstance(shard, ErrorCode):
            return _nothing(group_id, "", shard)
        group = shard.groups.get(group_id)
        if not isinstance(group, ClassicGroup):
            what = "not found" if group is None else "is not of the classic protocol"
            return _nothing(group_id, DEAD.value, ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} {what}.")
        return (yield from described(group))

    def delete(self, group_id: str, done: Callable[[ErrorCode], None]) -> None:
        shard = self._shards.find(group_id)
        if isinstance(shard, ErrorCode):
            done(shard)
            return
        group = shard.groups.get(group_id)
        if group is None or group.state in GONE:
            done(ErrorCode.GROUP_ID_NOT_FOUND)
        elif group.state not in WITHOUT_MEMBERS:
            done(ErrorCode.NON_EMPTY_GROUP)
        else:

            def deleted(code: ErrorCode) -> None:
                if code is ErrorCode.NONE:
                    self._end(group)
                done(code)

            def bare(code: ErrorCode) -> None:
                if code is ErrorCode.NONE:
                    self._offsets.forget_group(shard, group, deleted)
                else:
                    done(code)

            if isinstance(group, ShareGroup):
                self._share.delete_states(shard, group, bare)
            else:
                bare(ErrorCode.NONE)

    def _end(self, group: Group) -> None:
        """Mark the group object as dead for requests that still hold it."""
        if isinstance(group, ShareGroup):
            self._share.unload(group)
        elif isinstance(group, StreamsGroup):
            self._streams.unload(group)
        elif isinstance(group, ConsumerGroup):
            self._consumer.unload(group)
        elif group.state is not DEAD:
            self._rebalance.unload(group, ErrorCode.COORDINATOR_NOT_AVAILABLE)


def listed(group: Group) -> ListedGroup:
    if isinstance(group, ShareGroup):
        return ListedGroup(
            group_id=group.group_id, protocol_type=SHARE_TYPE, group_state=group.state.value, group_type=SHARE_TYPE
        )
    if isinstance(group, StreamsGroup):
        return ListedGroup(
            group_id=group.group_id, protocol_type=STREAMS_TYPE, group_state=group.state.value, group_type=STREAMS_TYPE
        )
    if isinstance(group, ConsumerGroup):
        return ListedGroup(
            group_id=group.group_id,
            protocol_type=CONSUMER,
            group_state=group.state.value,
            group_type=CONSUMER_TYPE,
        )
    return ListedGroup(
        group_id=group.group_id,
        protocol_type=group.protocol_type or "",
        group_state=group.state.value,
        group_type=CLASSIC_TYPE,
    )


def described(group: ClassicGroup) -> Steps[DescribedGroup]:
    """During a rebalance there is no protocol, so metadata is empty; assignments are the previous ones."""
    name = group.protocol_name if group.state is STABLE else None
    state = group.state
    members: list[DescribedGroupMember] = []
    for member in list(group.members.values()):
        members.append(
            DescribedGroupMember(
                member_id=member.member_id,
                group_instance_id=member.instance_id,
                client_id=member.client_id,
                client_host=member.client_host,
                member_metadata=b"" if name is None else member.metadata(name),
                member_assignment=member.assignment,
            )
        )
        yield
    return DescribedGroup(
        error_code=ErrorCode.NONE,
        group_id=group.group_id,
        group_state=state.value,
        protocol_type=group.protocol_type or "",
        protocol_data=name or "",
        members=tuple(members),
    )


def _nothing(group_id: str, state: str, code: ErrorCode, message: str | None = None) -> DescribedGroup:
    return DescribedGroup(
        error_code=code,
        error_message=message,
        group_id=group_id,
        group_state=state,
        protocol_type="",
        protocol_data="",
        members=(),
    )
