"""Create ACLs."""

from ixion.language.protocol.notation import Int8, Int16, Int32, String, Struct


class AclCreation(Struct):
    resource_type: Int8
    resource_name: String
    resource_pattern_type: Int8 = 3
    principal: String
    host: String
    operation: Int8
    permission_type: Int8


class CreateAclsRequest(Struct):
    creations: tuple[AclCreation, ...]


class AclCreationResult(Struct):
    error_code: Int16
    error_message: String | None


class CreateAclsResponse(Struct):
    throttle_time_ms: Int32 = 0
    results: tuple[AclCreationResult, ...]
