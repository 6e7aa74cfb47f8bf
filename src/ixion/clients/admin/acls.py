"""Access rules: describe, create and delete them. Rules and filters are those of `ixion.language.model.acl_binding`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ixion.clients.admin.plan import CONTROLLER, Call, Plan
from ixion.clients.admin.results import Results
from ixion.clients.admin.routes import Spread, fault_of, one, spread, to_controller
from ixion.language.model.acl_binding import Binding, Entry, Filter, ResourcePattern
from ixion.language.model.acl_names import Operation, PatternKind, Permission, ResourceKind
from ixion.language.model.errors import KafkaError
from ixion.language.protocol.messages.k29_describe_acls import DescribeAclsRequest, DescribeAclsResponse
from ixion.language.protocol.messages.k31_delete_acls import DeleteAclsFilter, DeleteAclsMatchingAcl
from ixion.language.protocol.notation import Struct
from ixion.language.protocol.registry import ApiKey

EVERYTHING: Final = Filter()


def describe_acls(call: Call, wanted: Filter = EVERYTHING) -> Plan[list[Binding]]:
    """The rules that match. Asks the controller, which also knows a rule that was just created."""
    request = DescribeAclsRequest(
        resource_type_filter=wanted.kind,
        resource_name_filter=wanted.name,
        pattern_type_filter=wanted.pattern,
        principal_filter=wanted.principal,
        host_filter=wanted.host,
        operation=wanted.operation,
        permission_type=wanted.permission,
    )
    answer = yield from one(
        call,
        CONTROLLER,
        ApiKey.DESCRIBE_ACLS,
        lambda _: request,
        DescribeAclsResponse,
        check=lambda found: fault_of(found.error_code, found.error_message, "the access rules"),
    )
    return sorted(
        Binding(
            ResourcePattern(ResourceKind(each.resource_type), each.resource_name, PatternKind(each.pattern_type)),
            Entry(entry.principal, entry.host, Operation(entry.operation), Permission(entry.permission_type)),
        )
        for each in answer.resources
        for entry in each.acls
    )


def create_acls(call: Call, rules: Iterable[Binding]) -> Plan[Results[Binding, None]]:
    """Create rules; one that exists already stays."""
    from ixion.language.protocol.messages.k30_create_acls import AclCreation, CreateAclsRequest, CreateAclsResponse

    asked: list[Binding] = []

    def make(some: list[Binding], _: int) -> Struct:
        asked[:] = some
        creations = tuple(
            AclCreation(
                resource_type=resource.kind,
                resource_name=resource.name,
                resource_pattern_type=resource.pattern,
                principal=entry.principal,
                host=entry.host,
                operation=entry.operation,
                permission_type=entry.permission,
            )
            for resource, entry in some
        )
        return CreateAclsRequest(creations=creations)

    def read(answer: Struct) -> dict[Binding, KafkaError | None]:
        assert isinstance(answer, CreateAclsResponse)
        return {
            rule: fault_of(result.error_code, result.error_message, f"the rule {rule}")
            for rule, result in zip(asked, answer.results, strict=False)
        }

    how = Spread(ApiKey.CREATE_ACLS)
    results: Results[Binding, None] = yield from spread(call, how, rules, to_controller, make, read)
    return results


def delete_acls(call: Call, filters: Iterable[Filter]) -> Plan[Results[Filter, list[Binding]]]:
    """Delete the rules that match. Returns them."""
    from ixion.language.protocol.messages.k31_delete_acls import DeleteAclsRequest, DeleteAclsResponse

    asked: list[Filter] = []

    def make(some: list[Filter], _: int) -> Struct:
        asked[:] = some
        return DeleteAclsRequest(filters=tuple(map(as_filter, some)))

    def read(answer: Struct) -> dict[Filter, list[Binding] | KafkaError]:
        assert isinstance(answer, DeleteAclsResponse)
        found: dict[Filter, list[Binding] | KafkaError] = {}
        for each, result in zip(asked, answer.filter_results, strict=False):
            fault = fault_of(result.error_code, result.error_message, "the access rules")
            for acl in result.matching_acls:
                fault = fault or fault_of(acl.error_code, acl.error_message, f"a rule about {acl.resource_name!r}")
            found[each] = sorted(map(as_binding, result.matching_acls)) if fault is None else fault
        return found

    return (yield from spread(call, Spread(ApiKey.DELETE_ACLS), filters, to_controller, make, read))


def as_filter(wanted: Filter) -> DeleteAclsFilter:
    return DeleteAclsFilter(
        resource_type_filter=wanted.kind,
        resource_name_filter=wanted.name,
        pattern_type_filter=wanted.pattern,
        principal_filter=wanted.principal,
        host_filter=wanted.host,
        operation=wanted.operation,
        permission_type=wanted.permission,
    )


def as_binding(found: DeleteAclsMatchingAcl) -> Binding:
    resource = ResourcePattern(ResourceKind(found.resource_type), found.resource_name, PatternKind(found.pattern_type))
    entry = Entry(found.principal, found.host, Operation(found.operation), Permission(found.permission_type))
    return Binding(resource, entry)
