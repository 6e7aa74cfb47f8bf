"""IncrementalAlterConfigs, 0 to 1: single settings of topics, brokers, loggers and groups are changed (KIP-339).

SET and DELETE are for every setting, APPEND and SUBTRACT for lists; they begin with the default where nothing is set.
A broker's name is its id, or empty for all brokers. Levels of loggers (KIP-412) hold until the process ends.
"""

from __future__ import annotations

from typing import cast

from ixion.apis.call import Call, Handle
from ixion.apis.config_edit import ConfigEditor, Edit, Outcome, Resource
from ixion.apis.own_task import in_own_task
from ixion.apis.services import Services
from ixion.protocol.messages.k44_incremental_alter_configs import (
    AlterConfigsResourceResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from ixion.timer.turns import Steps, in_turns, map_steps


def make(services: Services) -> Handle:
    editor = ConfigEditor(services)

    async def handle(call: Call) -> IncrementalAlterConfigsResponse:
        request = cast(IncrementalAlterConfigsRequest, call.body)
        resources = await in_turns(resources_of(request))
        outcomes = await editor.edit(resources, replace=False, validate_only=request.validate_only)
        answers = await in_turns(map_steps(result_of, zip(resources, outcomes, strict=True)))
        return IncrementalAlterConfigsResponse(throttle_time_ms=0, responses=tuple(answers))

    return in_own_task(handle)


def resources_of(request: IncrementalAlterConfigsRequest) -> Steps[list[Resource]]:
    found: list[Resource] = []
    for each in request.resources:
        edits: list[Edit] = []
        for to in each.configs:
            edits.append(Edit(name=to.name, value=to.value, operation=to.config_operation))
            yield
        found.append((each.resource_type, each.resource_name, edits))
        yield
    return found


def result_of(edited: tuple[Resource, Outcome]) -> AlterConfigsResourceResponse:
    (kind, name, _), (code, message) = edited
    return AlterConfigsResourceResponse(error_code=code, error_message=message, resource_type=kind, resource_name=name)
