"""The ways in which the bytes of a batch can be wrong, each with the Kafka error code that the client gets.

CORRUPT_MESSAGE is for damage on the way (a client may send again), INVALID_RECORD for a batch that was made wrong,
MESSAGE_TOO_LARGE for one that is too big once inflated: clients answer that by sending it in smaller parts.
"""

from __future__ import annotations

from ixion.model.errors import ErrorCode, KafkaError


def corrupt(message: str) -> KafkaError:
    return KafkaError(ErrorCode.CORRUPT_MESSAGE, message)


def invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_RECORD, message)


def too_large(message: str) -> KafkaError:
    return KafkaError(ErrorCode.MESSAGE_TOO_LARGE, message)


def unsupported_codec(message: str) -> KafkaError:
    return KafkaError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, message)


def old_magic(magic: int) -> KafkaError:
    """Messages of magic 0 and 1 are what producers sent before Kafka 0.11; Kafka 4 does not take them either."""
    return KafkaError(
        ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
        f"a message set of magic {magic} (before Kafka 0.11) is not supported; send record batches of magic 2",
    )


def check_magic(magic: int) -> None:
    if magic == 0 or magic == 1:
        raise old_magic(magic)
    if magic != 2:
        raise corrupt(f"magic {magic} is not one of a record batch; it must be 2")
