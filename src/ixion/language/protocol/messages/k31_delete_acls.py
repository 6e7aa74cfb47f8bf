"""Delete the ACLs that match filters."""

from ixion.language.protocol.notation import Int8, Int16, Int32, String, Struct


class DeleteAclsFilter(Struct):
    resource_type_filter: Int8
    resource_name_filter: String | None
    pattern_type_filter: Int8 = 3
    principal_filter: String | None
    host_filter: String | None
    operation: Int8
    permission_type: Int8


class DeleteAclsRequest(Struct):
    filters: tuple[DeleteAclsFilter, ...]


class DeleteAclsMatchingAcl(Struct):
    error_code: Int16
    error_message: String | None
    resource_type: Int8
    resource_name: String
    pattern_type: Int8 = 3
    principal: String
    host: String
    operation: Int8
    permission_type: Int8


class DeleteAclsFilterResult(Struct):
    error_code: Int16
    error_message: String | None
    matching_acls: tuple[DeleteAclsMatchingAcl, ...]


class DeleteAclsResponse(Struct):
    throttle_time_ms: Int32 = 0
    filter_results: tuple[DeleteAclsFilterResult, ...]
