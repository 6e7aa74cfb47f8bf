"""The headers of requests and responses.

A request header of version 0 has no client id; only ControlledShutdown version 0 uses it. Version 2 and, for responses,
version 1 have tagged fields. The client id keeps its classic length in all of them, so that a broker can read the
header of an ApiVersions request that is too new for it.
"""

from ixion.language.protocol.notation import Int16, Int32, String, Struct, field


class RequestHeader(Struct, within="0-2", flexible="2+"):
    api_key: Int16
    api_version: Int16
    correlation_id: Int32
    client_id: String | None = field("1+", default=None, ignorable=True, compactable=False)


class ResponseHeader(Struct, within="0-1", flexible="1+"):
    correlation_id: Int32
