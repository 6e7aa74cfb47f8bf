"""DeleteGroups (42), versions 0 to 2: delete groups without members, with their offsets (KIP-229)."""

from __future__ import annotations

from functools import partial
from typing import cast

from ixion.apis.call import Call, Handle
from ixion.apis.services import Services
from ixion.apis.sliced import respond_in_turns, sliced
from ixion.model.errors import ErrorCode
from ixion.protocol.messages.k42_delete_groups import (
    DeletableGroupResult,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
)
from ixion.protocol.notation import Struct
from ixion.timer.turns import Steps
from ixion.wire.answer import LATER, Later


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

    return sliced(handle)


def answer(codes: dict[str, ErrorCode], names: list[str]) -> Steps[DeleteGroupsResponse]:
    results: list[DeletableGroupResult] = []
    for name in names:
        results.append(DeletableGroupResult(group_id=name, error_code=codes[name]))
        yield
    return DeleteGroupsResponse(results=tuple(results))
