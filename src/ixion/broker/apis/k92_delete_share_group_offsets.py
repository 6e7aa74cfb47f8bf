"""DeleteShareGroupOffsets (92), version 0: delete the start offsets of a share group by topic (KIP-932).

A member that subscribes to such a topic later begins as share.auto.offset.reset says. A group with members gets
NON_EMPTY_GROUP, a topic that the group has no offsets of UNKNOWN_TOPIC_OR_PARTITION.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, cast

from ixion.broker.acl.numbers import DELETE, GROUP, READ, TOPIC
from ixion.broker.apis.begin import respond_in_turns
from ixion.broker.apis.call import Call, Handle
from ixion.broker.apis.guards.shapes import NO_GROUP, NO_TOPIC, appended, sorted_out
from ixion.broker.apis.repeats import once
from ixion.broker.apis.services import Services
from ixion.language.model.errors import ErrorCode
from ixion.language.model.ids import ZERO_ID
from ixion.language.protocol.messages.k92_delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
    DeleteShareGroupOffsetsResponseTopic,
)
from ixion.language.protocol.notation import Struct
from ixion.language.wire.answer import LATER, Later
from ixion.timer.turns import Steps, map_steps

if TYPE_CHECKING:
    from ixion.broker.acl.rights import Rights

REPEATS: Final = {"topics": once("topic_name")}


def make(services: Services) -> Handle:
    offsets = services.groups.share_offsets
    image = services.image

    def handle(call: Call) -> Steps[Struct | Later]:
        request = cast(DeleteShareGroupOffsetsRequest, call.body)
        yield
        code = offsets.check_empty(request.group_id)
        if code:
            return refused(code)
        names = [topic.topic_name for topic in request.topics]

        def deleted(codes: list[ErrorCode]) -> None:
            respond_in_turns(call, answer(names, codes))

        offsets.delete(request.group_id, names, deleted)
        return LATER

    def answer(names: list[str], codes: list[ErrorCode]) -> Steps[Struct]:
        topics: list[DeleteShareGroupOffsetsResponseTopic] = []
        for name, code in zip(names, codes, strict=True):
            known = image.topics.get(name)
            topics.append(
                DeleteShareGroupOffsetsResponseTopic(
                    topic_name=name,
                    topic_id=ZERO_ID if known is None else known.topic_id,
                    error_code=code,
                    error_message="There is no offset information to delete." if code else None,
                )
            )
            yield
        return DeleteShareGroupOffsetsResponse(error_code=ErrorCode.NONE, responses=tuple(topics))

    return handle


def refused(code: ErrorCode) -> DeleteShareGroupOffsetsResponse:
    return DeleteShareGroupOffsetsResponse(error_code=code, error_message=code.explanation, responses=())


def guard(call: Call, rights: Rights) -> Steps[Struct | None]:
    """DELETE on the group, READ on each topic."""
    request = cast(DeleteShareGroupOffsetsRequest, call.body)
    if not rights.may(DELETE, GROUP, request.group_id):
        return DeleteShareGroupOffsetsResponse(error_code=NO_GROUP, error_message=NO_GROUP.explanation, responses=())
    kept, others = yield from sorted_out(request.topics, lambda topic: rights.may(READ, TOPIC, topic.topic_name))
    if others:
        lines = yield from map_steps(
            lambda topic: DeleteShareGroupOffsetsResponseTopic(
                topic_name=topic.topic_name,
                topic_id=ZERO_ID,
                error_code=NO_TOPIC,
                error_message=NO_TOPIC.explanation,
            ),
            others,
        )
        call.narrow(request.replace(topics=tuple(kept)))
        call.amend = appended("responses", lines)
    return None


RIGHTS: Final = guard
