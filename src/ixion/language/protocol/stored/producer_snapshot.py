"""The file <offset>.snapshot: the producers of a log as of an offset."""

from ixion.language.protocol.notation import Int16, Int32, Int64, Struct, UInt32


class ProducerEntry(Struct):
    producer_id: Int64
    epoch: Int16
    last_sequence: Int32
    last_offset: Int64
    offset_delta: Int32
    timestamp: Int64
    coordinator_epoch: Int32
    current_txn_first_offset: Int64


class ProducerSnapshot(Struct, within="1"):
    crc: UInt32
    producer_entries: tuple[ProducerEntry, ...]
