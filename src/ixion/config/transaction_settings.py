"""Transactions."""

from __future__ import annotations

from typing import Final

from ixion.config.setting import Kind, Scope, flag, integer

TRANSACTION_MAX_TIMEOUT_MS: Final = integer(
    "transaction.max.timeout.ms", 900_000, least=1, doc="longest timeout of a transaction"
)
TRANSACTIONAL_ID_EXPIRATION_MS: Final = integer(
    "transactional.id.expiration.ms", 604_800_000, least=1, doc="time after which an idle transactional id expires"
)
TRANSACTION_STATE_LOG_MIN_ISR: Final = integer(
    "transaction.state.log.min.isr", 2, least=1, doc="replicas of the transaction topic that must be in sync"
)
TRANSACTION_STATE_LOG_REPLICATION_FACTOR: Final = integer(
    "transaction.state.log.replication.factor", 3, Kind.SHORT, least=1, doc="replicas of the transaction topic"
)
TRANSACTION_STATE_LOG_NUM_PARTITIONS: Final = integer(
    "transaction.state.log.num.partitions",
    50,
    least=1,
    doc="partitions of the transaction topic; do not change it afterwards",
)
TRANSACTION_STATE_LOG_SEGMENT_BYTES: Final = integer(
    "transaction.state.log.segment.bytes", 104_857_600, least=1, doc="segment size of the transaction topic"
)
TRANSACTION_STATE_LOG_LOAD_BUFFER_SIZE: Final = integer(
    "transaction.state.log.load.buffer.size", 5_242_880, least=1, doc="bytes read at once when transactions are loaded"
)
TRANSACTION_ABORT_TIMED_OUT_TRANSACTION_CLEANUP_INTERVAL_MS: Final = integer(
    "transaction.abort.timed.out.transaction.cleanup.interval.ms",
    10_000,
    least=1,
    doc="how often timed-out transactions are aborted",
)
TRANSACTION_REMOVE_EXPIRED_TRANSACTION_CLEANUP_INTERVAL_MS: Final = integer(
    "transaction.remove.expired.transaction.cleanup.interval.ms",
    3_600_000,
    least=1,
    doc="how often idle transactional ids are removed",
)
TRANSACTION_PARTITION_VERIFICATION_ENABLE: Final = flag(
    "transaction.partition.verification.enable",
    True,
    scope=Scope.CLUSTER_WIDE,
    doc="whether a first append verifies that the partition is in the transaction",
)
