"""Control records: the end of a transaction, a change of leader."""

from ixion.language.protocol.notation import BrokerId, Int16, Int32, Struct, Uuid, field


class ControlRecordTypeSchema(Struct, within="0"):
    type: Int16


class EndTxnMarker(Struct, within="0"):
    coordinator_epoch: Int32


class Voter(Struct):
    voter_id: Int32
    voter_directory_id: Uuid = field("1+")


class LeaderChangeMessage(Struct, within="0-1", flexible="0+"):
    version: Int16
    leader_id: BrokerId
    voters: tuple[Voter, ...]
    granting_voters: tuple[Voter, ...]
