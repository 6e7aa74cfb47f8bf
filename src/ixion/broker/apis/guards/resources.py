"""Guards of settings: those of a broker need rights on the cluster, those of a topic or a group need rights on it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ixion.broker.acl.numbers import CLUSTER, GROUP, TOPIC
from ixion.broker.acl.rights import Rights
from ixion.broker.apis.call import Call
from ixion.broker.apis.guards.guard import Guard
from ixion.broker.apis.guards.shapes import appended, sorted_out
from ixion.language.model.acl_names import CLUSTER_NAME
from ixion.language.model.errors import ErrorCode
from ixion.language.model.resource_type import ResourceType
from ixion.language.protocol.notation import Struct
from ixion.timer.turns import Steps


def owner_of(resource: Any) -> tuple[int, str, ErrorCode]:
    """The kind and name of the resource that needs the right, and the code of a refusal."""
    if resource.resource_type == ResourceType.TOPIC:
        return TOPIC, resource.resource_name, ErrorCode.TOPIC_AUTHORIZATION_FAILED
    if resource.resource_type == ResourceType.GROUP:
        return GROUP, resource.resource_name, ErrorCode.GROUP_AUTHORIZATION_FAILED
    return CLUSTER, CLUSTER_NAME, ErrorCode.CLUSTER_AUTHORIZATION_FAILED


def on_resources(
    operation: int, answered: str, refuse: Callable[[Any, ErrorCode], Struct], unchecked: ResourceType | None = None
) -> Guard:
    """`unchecked`: resources that the handler refuses to every client."""

    def guard(call: Call, rights: Rights) -> Steps[Struct | None]:
        def keep(resource: Any) -> bool:
            if resource.resource_type == unchecked:
                return True
            kind, name, _ = owner_of(resource)
            return rights.may(operation, kind, name)

        body: Any = call.body
        kept, others = yield from sorted_out(body.resources, keep)
        if others:
            call.narrow(body.replace(resources=tuple(kept)))
            distinct = {(each.resource_type, each.resource_name): each for each in others}
            call.amend = appended(answered, [refuse(each, owner_of(each)[2]) for each in distinct.values()])
        return None

    return guard


def altered(make: Callable[..., Struct]) -> Callable[[Any, ErrorCode], Struct]:
    return lambda resource, code: make(
        error_code=code,
        error_message=code.explanation,
        resource_type=resource.resource_type,
        resource_name=resource.resource_name,
    )
