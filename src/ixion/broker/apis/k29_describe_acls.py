"""DescribeAcls, 1 to 3: the ACL rules that match a filter. Needs DESCRIBE on the cluster.

Version 2 is flexible, 3 brought rules on users. SECURITY_DISABLED if no authorizer is configured, as in Kafka.
"""

from __future__ import annotations

from typing import Final, cast

from ixion.broker.acl.numbers import DESCRIBE
from ixion.broker.apis.acl_filters import filter_of
from ixion.broker.apis.call import Call, Handle
from ixion.broker.apis.guards.shapes import NO_CLUSTER, refused_with
from ixion.broker.apis.services import Services
from ixion.language.model.acl_binding import ResourcePattern
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.protocol.messages.k29_describe_acls import (
    AclDescription,
    DescribeAclsRequest,
    DescribeAclsResource,
    DescribeAclsResponse,
)
from ixion.timer.turns import Steps

RIGHTS: Final = refused_with(
    DESCRIBE, DescribeAclsResponse(error_code=NO_CLUSTER, error_message=NO_CLUSTER.explanation, resources=())
)

NO_AUTHORIZER: Final = "no authorizer is configured on the broker"


def make(services: Services) -> Handle:
    acls = services.acls

    def handle(call: Call) -> Steps[DescribeAclsResponse]:
        if acls is None:
            return refusal(ErrorCode.SECURITY_DISABLED, NO_AUTHORIZER)
        try:
            wanted = filter_of(cast(DescribeAclsRequest, call.body))
        except KafkaError as error:
            return refusal(error.code, error.message)
        found: dict[ResourcePattern, list[AclDescription]] = {}
        for resource, entries in list(acls.rules.resources.items()):
            yield
            if wanted.matches_resource(resource):
                for entry in entries:
                    if wanted.matches_entry(entry):
                        found.setdefault(resource, []).append(
                            AclDescription(
                                principal=entry.principal,
                                host=entry.host,
                                operation=entry.operation,
                                permission_type=entry.permission,
                            )
                        )
        return DescribeAclsResponse(
            error_code=ErrorCode.NONE,
            error_message=None,
            resources=tuple(
                DescribeAclsResource(
                    resource_type=resource.kind,
                    resource_name=resource.name,
                    pattern_type=resource.pattern,
                    acls=tuple(rules),
                )
                for resource, rules in found.items()
            ),
        )

    return handle


def refusal(code: ErrorCode, message: str | None) -> DescribeAclsResponse:
    return DescribeAclsResponse(error_code=code, error_message=message, resources=())
