"""AlterConfigs, 0 to 2: settings of topics, brokers and groups are replaced; what is left out is set no more.

Older than IncrementalAlterConfigs, which clients prefer because it cannot undo what others have set. Levels of loggers
are not changed this way.
"""

from __future__ import annotations

from typing import cast

from ixion.apis.call import Call, Handle
from ixion.apis.config_edit import ConfigEditor, Edit, Outcome, Resource
from ixion.apis.own_task import in_own_task
from ixion.apis.services import Services
from ixion.protocol.messages.k33_alter_configs import (
    AlterConfigsRequest,
    AlterConfigsResourceResponse,
    AlterConfigsResponse,
)
from ixion.timer.turns import Steps, in_turns, map_steps


def make(services: Services) -> Handle:
    editor = ConfigEditor(services)

    async def handle(call: Call) -> AlterConfigsResponse:
        request = cast(AlterConfigsRequest, call.body)
        resources = await in_turns(resources_of(request))
        outcomes = await editor.edit(resources, replace=True, validate_only=request.validate_only)
        answers = await in_turns(map_steps(result_of, zip(resources, outcomes, strict=True)))
        return AlterConfigsResponse(throttle_time_ms=0, responses=tuple(answers))

    return in_own_task(handle)


def resources_of(request: AlterConfigsRequest) -> Steps[list[Resource]]:
    found: list[Resource] = []
    for each in request.resources:
        edits: list[Edit] = []
        for to in each.configs:
            edits.append(Edit(name=to.name, value=to.value))
            yield
        found.append((each.resource_type, each.resource_name, edits))
        yield
    return found


def result_of(edited: tuple[Resource, Outcome]) -> AlterConfigsResourceResponse:
    (kind, name, _), (code, message) = edited
    return AlterConfigsResourceResponse(error_code=code, error_message=message, resource_type=kind, resource_name=name)
