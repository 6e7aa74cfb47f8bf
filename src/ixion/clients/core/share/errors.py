"""Faults of share consumers, besides those that all consumers have."""

from __future__ import annotations

from ixion.language.model.errors import ErrorCode, KafkaError


class ShareGroupsUnsupportedError(KafkaError):
    """The brokers have no share groups: too old, or switched off."""

    def __init__(self, group: str, reason: str) -> None:
        text = (
            f"share group {group!r}: {reason}; share groups (KIP-932) need Apache Kafka 4.2 or later, or ixion, with "
            "share.version 1"
        )
        super().__init__(ErrorCode.UNSUPPORTED_VERSION, text)


class LockLostError(KafkaError):
    """The lock of the record has ended before its acknowledgement: the record is delivered again, perhaps to another
    member."""

    def __init__(self, what: str, reason: str) -> None:
        super().__init__(ErrorCode.INVALID_RECORD_STATE, f"{what} is not ours any more: {reason}")
