"""DescribeConfigs and the two requests that alter configs, in few words.

Use it in tests of settings over the wire; a setting that only needs to be given goes into `Broker({...})`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.messages import k44_incremental_alter_configs as k44
from ixion.language.protocol.messages.k32_describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)
from tests.apis.asking import Asking

TOPIC, BROKER, LOGGER = 2, 4, 8
SET, DELETE, APPEND, SUBTRACT = range(4)

Edits = Sequence[tuple[str, int, str | None]]


def look(
    asking: Asking, kind: int, name: str, *keys: str, synonyms: bool = True, doc: bool = False, version: int = -1
) -> DescribeConfigsResult:
    resource = DescribeConfigsResource(resource_type=kind, resource_name=name, configuration_keys=keys or None)
    request = DescribeConfigsRequest(resources=(resource,), include_synonyms=synonyms, include_documentation=doc)
    (result,) = asking.ask(request, DescribeConfigsResponse, version).results
    assert (result.resource_type, result.resource_name) == (kind, name)
    return result


def setting(asking: Asking, kind: int, name: str, key: str) -> DescribeConfigsResourceResult:
    (found,) = look(asking, kind, name, key).configs
    assert found.name == key
    return found


def change(
    asking: Asking, kind: int, name: str, edits: Edits, *, validate_only: bool = False, version: int = -1
) -> tuple[ErrorCode, str | None]:
    (outcome,) = change_all(asking, [(kind, name, edits)], validate_only=validate_only, version=version)
    return outcome


def change_all(
    asking: Asking,
    resources: Sequence[tuple[int, str, Edits]],
    *,
    validate_only: bool = False,
    version: int = -1,
) -> list[tuple[ErrorCode, str | None]]:
    request = k44.IncrementalAlterConfigsRequest(
        resources=tuple(
            k44.AlterConfigsResource(
                resource_type=kind,
                resource_name=name,
                configs=tuple(
                    k44.AlterableConfig(name=key, config_operation=operation, value=value)
                    for key, operation, value in edits
                ),
            )
            for kind, name, edits in resources
        ),
        validate_only=validate_only,
    )
    answer = asking.ask(request, k44.IncrementalAlterConfigsResponse, version)
    assert [(each.resource_type, each.resource_name) for each in answer.responses] == [
        (kind, name) for kind, name, _ in resources
    ]
    return [(ErrorCode(each.error_code), each.error_message) for each in answer.responses]


def must_set(asking: Asking, kind: int, name: str, values: Mapping[str, str]) -> None:
    outcome = change(asking, kind, name, [(key, SET, value) for key, value in values.items()])
    assert outcome == (ErrorCode.NONE, None)
