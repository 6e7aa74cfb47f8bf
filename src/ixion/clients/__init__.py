"""Clients of a broker, for the command line, the tests, other programs and the brokers themselves.

    from ixion.clients import Admin, Consumer, Producer, ShareConsumer
    from ixion.clients.aio import Consumer      # the same names, with await

`core` decides for connections, metadata, the producer and the consumer, without I/O; `admin` administers.
`cluster.Cluster` and `reader.Reader` are an older blocking client on the same connections. The package itself imports
nothing, so a caller imports only what it uses.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from ixion.clients.admin.admin import Admin
    from ixion.clients.admin.offsets import EARLIEST, LATEST
    from ixion.clients.admin.results import Results
    from ixion.clients.admin.topics import NewPartitions, NewTopic
    from ixion.clients.consumer.consumer import Consumer
    from ixion.clients.consumer.decoding import DeserializationError
    from ixion.clients.consumer.guard import ConcurrentUseError
    from ixion.clients.consumer.listener import RebalanceListener
    from ixion.clients.consumer.record import ConsumerRecord
    from ixion.clients.consumer.settings import ConsumerOptions
    from ixion.clients.core.consumer.commits import OffsetAndMetadata
    from ixion.clients.core.consumer.errors import (
        CommitFailedError,
        ConsumerClosedError,
        ConsumerUseError,
        LogTruncationError,
        NoOffsetError,
        RebalanceInProgressError,
        WakeupError,
    )
    from ixion.clients.core.consumer.subscription import NotAssignedError
    from ixion.clients.core.producer.batch import Delivery
    from ixion.clients.core.producer.group_offsets import GroupMetadata
    from ixion.clients.core.producer.settings import OutgoingRecord
    from ixion.clients.core.share.acknowledgement import Acknowledged
    from ixion.clients.core.share.errors import LockLostError, ShareGroupsUnsupportedError
    from ixion.clients.faults import (
        AuthenticationError,
        DisconnectedError,
        FencedError,
        TimedOutError,
        UnknownTopicError,
        UnreachableError,
    )
    from ixion.clients.metadata import TopicPartition
    from ixion.clients.producer import DeliveryFuture, Producer
    from ixion.clients.settings import ProducerOptions
    from ixion.clients.share.consumer import AcknowledgementFuture, ShareConsumer
    from ixion.clients.share.record import ShareRecord
    from ixion.clients.share.settings import ShareConsumerOptions
    from ixion.language.model.errors import ErrorCode, KafkaError

__all__ = [
    "EARLIEST",
    "LATEST",
    "Acknowledged",
    "AcknowledgementFuture",
    "Admin",
    "AuthenticationError",
    "CommitFailedError",
    "ConcurrentUseError",
    "Consumer",
    "ConsumerClosedError",
    "ConsumerOptions",
    "ConsumerRecord",
    "ConsumerUseError",
    "Delivery",
    "DeliveryFuture",
    "DeserializationError",
    "DisconnectedError",
    "ErrorCode",
    "FencedError",
    "GroupMetadata",
    "KafkaError",
    "LockLostError",
    "LogTruncationError",
    "NewPartitions",
    "NewTopic",
    "NoOffsetError",
    "NotAssignedError",
    "OffsetAndMetadata",
    "OutgoingRecord",
    "Producer",
    "ProducerOptions",
    "RebalanceInProgressError",
    "RebalanceListener",
    "Results",
    "ShareConsumer",
    "ShareConsumerOptions",
    "ShareGroupsUnsupportedError",
    "ShareRecord",
    "TimedOutError",
    "TopicPartition",
    "UnknownTopicError",
    "UnreachableError",
    "WakeupError",
]

_HOMES: Final = {
    "Acknowledged": "ixion.clients.core.share.acknowledgement",
    "AcknowledgementFuture": "ixion.clients.share.consumer",
    "Admin": "ixion.clients.admin.admin",
    "AuthenticationError": "ixion.clients.faults",
    "CommitFailedError": "ixion.clients.core.consumer.errors",
    "ConcurrentUseError": "ixion.clients.consumer.guard",
    "Consumer": "ixion.clients.consumer.consumer",
    "ConsumerClosedError": "ixion.clients.core.consumer.errors",
    "ConsumerOptions": "ixion.clients.consumer.settings",
    "ConsumerRecord": "ixion.clients.consumer.record",
    "ConsumerUseError": "ixion.clients.core.consumer.errors",
    "Delivery": "ixion.clients.core.producer.batch",
    "DeliveryFuture": "ixion.clients.producer",
    "DeserializationError": "ixion.clients.consumer.decoding",
    "DisconnectedError": "ixion.clients.faults",
    "EARLIEST": "ixion.clients.admin.offsets",
    "ErrorCode": "ixion.language.model.errors",
    "FencedError": "ixion.clients.faults",
    "GroupMetadata": "ixion.clients.core.producer.group_offsets",
    "KafkaError": "ixion.language.model.errors",
    "LATEST": "ixion.clients.admin.offsets",
    "LockLostError": "ixion.clients.core.share.errors",
    "LogTruncationError": "ixion.clients.core.consumer.errors",
    "NewPartitions": "ixion.clients.admin.topics",
    "NewTopic": "ixion.clients.admin.topics",
    "NoOffsetError": "ixion.clients.core.consumer.errors",
    "NotAssignedError": "ixion.clients.core.consumer.subscription",
    "OffsetAndMetadata": "ixion.clients.core.consumer.commits",
    "OutgoingRecord": "ixion.clients.core.producer.settings",
    "Producer": "ixion.clients.producer",
    "ProducerOptions": "ixion.clients.settings",
    "RebalanceInProgressError": "ixion.clients.core.consumer.errors",
    "RebalanceListener": "ixion.clients.consumer.listener",
    "Results": "ixion.clients.admin.results",
    "ShareConsumer": "ixion.clients.share.consumer",
    "ShareConsumerOptions": "ixion.clients.share.settings",
    "ShareGroupsUnsupportedError": "ixion.clients.core.share.errors",
    "ShareRecord": "ixion.clients.share.record",
    "TimedOutError": "ixion.clients.faults",
    "TopicPartition": "ixion.clients.metadata",
    "UnknownTopicError": "ixion.clients.faults",
    "UnreachableError": "ixion.clients.faults",
    "WakeupError": "ixion.clients.core.consumer.errors",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(_HOMES[name]), name)
    if isinstance(value, type) and not value.__doc__:
        from ixion.clients.described import describe

        describe(value)
    globals()[name] = value
    return value
