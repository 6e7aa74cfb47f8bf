"""The ways in which the bytes of a batch can be wrong, each with the Kafka error code that the client gets.

CORRUPT_MESSAGE is damage on the way: a client may retry. INVALID_RECORD is a batch that its producer made wrong.
MESSAGE_TOO_LARGE is a batch that is too big once inflated: clients split it and send smaller batches.
"""

from __future__ import annotations

from ixion.language.model.errors import ErrorCode, KafkaError


class LongWorkError(Exception):
    """A batch needs more steps than its reader was allowed: the event loop leaves it to a worker thread."""


def corrupt(message: str) -> KafkaError:
    return KafkaError(ErrorCode.CORRUPT_MESSAGE, message)


def invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_RECORD, message)


def too_large(message: str) -> KafkaError:
    return KafkaError(ErrorCode.MESSAGE_TOO_LARGE, message)


def unsupported_codec(message: str) -> KafkaError:
    return KafkaError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, message)


def old_magic(magic: int) -> KafkaError:
    """Producers sent magic 0 and 1 before Kafka 0.11; Kafka 4 refuses them too."""
    return KafkaError(
        ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT,
        f"a message set of magic {magic} (before Kafka 0.11) is not supported; send record batches of magic 2",
    )


def check_magic(magic: int) -> None:
    if magic == 0 or magic == 1:
        raise old_magic(magic)
    if magic != 2:
        raise corrupt(f"magic {magic} is not that of a record batch, which is 2")
