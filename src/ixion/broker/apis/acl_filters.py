"""Parses and checks the ACL rules and filters of requests."""

from __future__ import annotations

from typing import Protocol

from ixion.broker.acl.authorizer import check_principal
from ixion.language.model.acl_binding import Binding, Entry, Filter, ResourcePattern
from ixion.language.model.acl_names import CLUSTER_NAME, Operation, PatternKind, Permission, ResourceKind
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.protocol.messages.k30_create_acls import AclCreation


class AskedFilter(Protocol):
    """The fields that the filters of DescribeAcls and DeleteAcls share."""

    @property
    def resource_type_filter(self) -> int: ...
    @property
    def resource_name_filter(self) -> str | None: ...
    @property
    def pattern_type_filter(self) -> int: ...
    @property
    def principal_filter(self) -> str | None: ...
    @property
    def host_filter(self) -> str | None: ...
    @property
    def operation(self) -> int: ...
    @property
    def permission_type(self) -> int: ...


def filter_of(asked: AskedFilter) -> Filter:
    """KafkaError INVALID_REQUEST if a number is unknown."""
    try:
        found = Filter(
            kind=ResourceKind(asked.resource_type_filter),
            name=asked.resource_name_filter,
            pattern=PatternKind(asked.pattern_type_filter),
            principal=asked.principal_filter,
            host=asked.host_filter,
            operation=Operation(asked.operation),
            permission=Permission(asked.permission_type),
        )
    except ValueError as error:
        raise invalid(f"the filter has an unknown number: {error}") from error
    if found.is_unknown:
        raise invalid("a filter cannot contain UNKNOWN")
    return found


def binding_of(asked: AclCreation) -> Binding:
    """KafkaError INVALID_REQUEST if it is not a valid rule."""
    try:
        kind = ResourceKind(asked.resource_type)
        pattern = PatternKind(asked.resource_pattern_type)
        operation = Operation(asked.operation)
        permission = Permission(asked.permission_type)
        check_principal(asked.principal)
    except ValueError as error:
        raise invalid(str(error)) from error
    if kind <= ResourceKind.ANY or operation <= Operation.ANY or permission <= Permission.ANY:
        raise invalid("a rule must have one resource type, one operation, and ALLOW or DENY")
    if pattern <= PatternKind.MATCH:
        raise invalid("the pattern of a rule must be LITERAL or PREFIXED")
    if not asked.resource_name:
        raise invalid("a rule must have a resource name")
    if kind == ResourceKind.CLUSTER and asked.resource_name != CLUSTER_NAME:
        raise invalid(f"the only resource of type CLUSTER is {CLUSTER_NAME}")
    if "/" in asked.resource_name:
        raise invalid("the resource name of a rule cannot contain a slash")
    resource = ResourcePattern(kind, asked.resource_name, pattern)
    return Binding(resource, Entry(asked.principal, asked.host, operation, permission))


def invalid(text: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, text)
