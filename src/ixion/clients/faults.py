"""Faults between a client and its brokers, besides the error codes of brokers.

All are KafkaErrors, so that a caller has one thing to catch; the code says whether a retry can help.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeVar

from ixion.language.model.errors import ErrorCode, KafkaError

T = TypeVar("T")


class UnreachableError(KafkaError):
    """The connection was refused, or the host has no address."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.BROKER_NOT_AVAILABLE, message)


class DisconnectedError(KafkaError):
    """The connection broke."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.NETWORK_EXCEPTION, message)


class GarbledError(DisconnectedError):
    """The received bytes are no valid answer: a faulty broker, or no broker at all."""


class AuthenticationError(KafkaError):
    """Authentication failed, of us or of the broker: a refused login, an invalid certificate.

    It is not retriable: the same credentials get the same answer. Kafka has no code of its own for TLS; such a fault
    has SASL_AUTHENTICATION_FAILED as well.
    """

    def __init__(self, message: str, code: ErrorCode = ErrorCode.SASL_AUTHENTICATION_FAILED) -> None:
        super().__init__(code, message)


class TimedOutError(KafkaError):
    """The caller's timeout has passed."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.REQUEST_TIMED_OUT, message)


class FencedError(KafkaError):
    """Another producer has taken over the transactional id: this one must end."""


MOST_COMPARED: Final = 500  # topics whose names are compared with a wrong one


class UnknownTopicError(KafkaError):
    """The cluster has no such topic; the message names the one that may have been meant."""

    def __init__(self, topic: str, known: list[str]) -> None:
        from difflib import get_close_matches  # slow to import, and needed only for misspelt names

        if len(known) > MOST_COMPARED:  # 20 to 100 µs each, while other calls of the client wait
            known = [name for name in known if name[:1] == topic[:1] and abs(len(name) - len(topic)) <= 2]
        near = get_close_matches(topic, known[:MOST_COMPARED], n=1)
        self.near: str | None = near[0] if near else None
        meant = f"; did you mean {near[0]!r}?" if near else ""
        super().__init__(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {topic!r}{meant}")
        self.topic = topic


def only(found: Sequence[T], about: str) -> T:
    """The one result of an answer about one thing. GarbledError if there are more or none."""
    if len(found) != 1:
        raise GarbledError(f"{about}: the broker answered with {len(found)} results instead of 1")
    return found[0]


def check(code: int, message: str | None, about: str) -> None:
    """KafkaError if an answer carries one; `about` names what was asked for."""
    if code != 0:
        found = error_code(code)
        raise KafkaError(found, f"{about}: {message or found.explanation}")


def error_code(code: int) -> ErrorCode:
    """The error code; UNKNOWN_SERVER_ERROR for a code of a newer broker that we do not know."""
    try:
        return ErrorCode(code)
    except ValueError:
        return ErrorCode.UNKNOWN_SERVER_ERROR
