"""The ACLs that match a filter."""

from ixion.language.protocol.notation import Int8, Int16, Int32, String, Struct


class DescribeAclsRequest(Struct):
    resource_type_filter: Int8
    resource_name_filter: String | None
    pattern_type_filter: Int8 = 3
    principal_filter: String | None
    host_filter: String | None
    operation: Int8
    permission_type: Int8


class AclDescription(Struct):
    principal: String
    host: String
    operation: Int8
    permission_type: Int8


class DescribeAclsResource(Struct):
    resource_type: Int8
    resource_name: String
    pattern_type: Int8 = 3
    acls: tuple[AclDescription, ...]


class DescribeAclsResponse(Struct):
    throttle_time_ms: Int32 = 0
    error_code: Int16
    error_message: String | None
    resources: tuple[DescribeAclsResource, ...]
