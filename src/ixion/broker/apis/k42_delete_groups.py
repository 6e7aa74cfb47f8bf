"""DeleteGroups (42), versions 0 to 3: delete groups without members, with their offsets (KIP-229).

Version 3, of Kafka 4.4, brought a message for each group that could not be deleted.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, cast

from ixion.broker.acl.numbers import DELETE, GROUP
from ixion.broker.apis.begin import respond_in_turns
from ixion.broker.apis.call import Call, Handle
from ixion.broker.apis.guards.shapes import NO_GROUP, appended, sorted_out
from ixion.broker.apis.repeats import once
from ixion.broker.apis.services import Services
from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.messages.k42_delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)
from ixion.language.protocol.notation import Struct
from ixion.language.wire.answer import LATER, Later
from ixion.timer.turns import Steps

if TYPE_CHECKING:
    from ixion.broker.acl.rights import Rights

REPEATS: Final = {"groups_names": once()}


def make(services: Services) -> Handle:
    admin = services.groups.admin

    def handle(call: Call) -> Steps[Struct | Later]:
        request = cast(DeleteGroupsRequest, call.body)
        names = list(dict.fromkeys(request.groups_names))
        if not names:
            return DeleteGroupsResponse(results=())
        codes: dict[str, ErrorCode] = {}

        def deleted(name: str, code: ErrorCode) -> None:
            codes[name] = code
            if len(codes) == len(names):
                respond_in_turns(call, answer(codes, names))

        for name in names:
            admin.delete(name, partial(deleted, name))
            yield
        return LATER

    return handle


def answer(codes: dict[str, ErrorCode], names: list[str]) -> Steps[DeleteGroupsResponse]:
    results: list[DeletableGroupResult] = []
    for name in names:
        code = codes[name]
        text = None if code is ErrorCode.NONE else code.explanation
        results.append(DeletableGroupResult(group_id=name, error_code=code, error_message=text))
        yield
    return DeleteGroupsResponse(results=tuple(results))


def guard(call: Call, rights: Rights) -> Steps[Struct | None]:
    request = cast(DeleteGroupsRequest, call.body)
    kept, others = yield from sorted_out(request.groups_names, lambda group: rights.may(DELETE, GROUP, group))
    if others:
        call.narrow(request.replace(groups_names=tuple(kept)))
        call.amend = appended(
            "results",
            [
                DeletableGroupResult(group_id=group, error_code=NO_GROUP, error_message=NO_GROUP.explanation)
                for group in others
            ],
        )
    return None


RIGHTS: Final = guard
