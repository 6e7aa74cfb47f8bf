"""Mistakes in the use of a consumer, and what interrupts it. Faults of brokers are KafkaErrors, as everywhere."""

from __future__ import annotations

from ixion._native import mypyc_attr
from ixion.language.model.errors import ErrorCode, KafkaError


class WakeupError(Exception):
    """`wakeup()` was called; the call that it ended can be made again."""


@mypyc_attr(native_class=False)
class ConsumerClosedError(RuntimeError):
    """A call after `close`."""

    def __init__(self) -> None:
        super().__init__("this consumer is closed")


@mypyc_attr(native_class=False)
class ConsumerUseError(RuntimeError):
    """The call does not fit how the consumer is used; the message says what does."""


class CommitFailedError(KafkaError):
    """The group has rebalanced without this member; others may read its partitions by now."""

    def __init__(self, group: str) -> None:
        text = f"group {group!r} has rebalanced: nothing is committed; poll again to get partitions"
        super().__init__(ErrorCode.ILLEGAL_GENERATION, text)


class RebalanceInProgressError(KafkaError):
    """The group is rebalancing, and this member takes part. Poll until that is over, then commit again."""

    def __init__(self, group: str) -> None:
        text = f"group {group!r} is rebalancing: nothing is committed yet; poll, then commit again"
        super().__init__(ErrorCode.REBALANCE_IN_PROGRESS, text)


class LogTruncationError(KafkaError):
    """A new leader has lost records that were read from the old one, and `auto_offset_reset` is none. Seek then."""

    def __init__(self, place: str, position: int, offset: int) -> None:
        text = (
            f"{place}: a new leader has other records from offset {offset} on; this consumer has read up to {position}"
        )
        super().__init__(ErrorCode.OFFSET_OUT_OF_RANGE, text)
        self.offset = offset


class NoOffsetError(KafkaError):
    """There is no position to read from, and `auto_offset_reset` is none."""

    def __init__(self, places: str) -> None:
        super().__init__(ErrorCode.OFFSET_OUT_OF_RANGE, f"{places}: no valid offset to read from, and no reset policy")
