"""Set or delete SCRAM credentials."""

from ixion.language.protocol.notation import Bytes, Int8, Int16, Int32, String, Struct


class ScramCredentialDeletion(Struct):
    name: String
    mechanism: Int8


class ScramCredentialUpsertion(Struct):
    name: String
    mechanism: Int8
    iterations: Int32
    salt: Bytes
    salted_password: Bytes


class AlterUserScramCredentialsRequest(Struct):
    deletions: tuple[ScramCredentialDeletion, ...]
    upsertions: tuple[ScramCredentialUpsertion, ...]


class AlterUserScramCredentialsResult(Struct):
    user: String
    error_code: Int16
    error_message: String | None


class AlterUserScramCredentialsResponse(Struct):
    throttle_time_ms: Int32 = 0
    results: tuple[AlterUserScramCredentialsResult, ...]
