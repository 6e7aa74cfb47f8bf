"""Answers as plain values that are equal if two brokers behave the same.

Left out are texts for humans, addresses, times and sizes of files. Codes are shown by name, ids that a broker draws by
their label, record batches as their records. Lists whose order means nothing are sorted.
"""

from __future__ import annotations

from typing import Any, Final

from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.notation import Struct
from ixion.language.records.batches import iter_batches
from tests.differential.side import Side

LEFT_OUT: Final = frozenset(
    {
        *("error_message", "throttle_time_ms", "host", "port", "rack", "cluster_id", "client_host", "client_id"),
        *("session_id", "documentation", "config_source", "log_append_time_ms", "topic_authorized_operations"),
        *("cluster_authorized_operations", "authorized_operations", "node_endpoints", "preferred_read_replica"),
        *("controller_id", "coordinator_id", "broker_id", "leader_epoch", "node_id", "heartbeat_interval_ms"),
        *("aborted_transactions", "synonyms", "transaction_start_time_ms", "transaction_timeout_ms", "expiry_time"),
        *("current_leader_epoch", "committed_leader_epoch", "record_errors", "current_leader", "batch_index"),
        *("eligible_leader_replicas", "last_known_elr", "unknown_tagged_fields"),
    }
)
DRAWN: Final = frozenset({"member_id", "leader", "producer_id", "topic_id", "ongoing_txn_producer_id"})
CODES: Final = frozenset({"error_code", "partition_error_code"})
IN_ORDER: Final = frozenset({"coordinators"})  # answers by position


def plain(value: Any, side: Side, field: str = "") -> Any:
    if isinstance(value, Struct):
        names = [column.name for column in type(value).columns if column.name not in LEFT_OUT]
        return {name: plain(getattr(value, name), side, name) for name in names}
    if isinstance(value, tuple | list):
        shown = [plain(each, side, field) for each in value]
        return shown if field in IN_ORDER else sorted(shown, key=repr)
    if field in CODES:
        return ErrorCode(value).name
    if field in DRAWN:
        return drawn(value, side)
    if field == "timestamp" and value % 1_000:
        return "of the broker"  # a marker, or a record with LogAppendTime: those of a history are whole seconds
    if field == "records":
        return records(value)
    if isinstance(value, memoryview | bytearray):
        return bytes(value)
    return value


def drawn(value: Any, side: Side) -> Any:
    if value in ("", -1, 0, None, bytes(16)):
        return value
    return side.label_of(value) or "drawn"


def records(data: Any) -> list[tuple[Any, ...]]:
    found: list[tuple[Any, ...]] = []
    for batch in iter_batches(bytes(data or b"")):
        kind = "control" if batch.is_control else "transactional" if batch.is_transactional else "plain"
        for record in batch.records():
            value = None if batch.is_control else record.value
            found.append((int(record.offset), kind, int(batch.producer_epoch), value))
    return found
