"""Log lines and warnings of clients, about faults in the code that uses them.

`logging` and `warnings` are imported only when something is wrong, to keep the import of a client short.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import logging

    from ixion.clients.core.producer.batch import Delivery
    from ixion.language.model.errors import KafkaError


def log_interceptor(method: str) -> None:
    _logger().exception("%s of an interceptor raised", method)


def log_callback(delivery: Delivery) -> None:
    _logger().exception("the callback of a record to %s raised", delivery.place)


def log_callback_ended() -> None:
    _logger().exception("a callback tried to end the producer's own thread; the thread continues")


def log_lost(error: KafkaError) -> None:
    _logger().error("records of a producer that was dropped without close() were lost; the first error: %s", error)


def log_unsent(count: int) -> None:
    text = "the program ends before %s of a producer %s acknowledged; call flush() or close() first"
    _logger().warning(text, records(count), "is" if count == 1 else "are")


def log_unanswered(error: KafkaError) -> None:
    _logger().warning("no broker has answered yet, and the client goes on trying: %s", error.message)


def log_missing(topic: str) -> None:
    _logger().warning("there is no topic %r yet, and the client goes on asking for it", topic)


def log_uncommitted(error: KafkaError) -> None:
    _logger().warning("the last automatic commit failed, so records will be read again: %s", error)


def log_refused_commit(error: KafkaError) -> None:
    _logger().warning("automatic commits are refused, so a restart would read records again: %s", error)


def log_raised_timeout(timeout_ms: float) -> None:
    text = "delivery_timeout_ms should be equal to or larger than linger_ms + request_timeout_ms; it is set to %.9g"
    _logger().warning(text, timeout_ms)


def warn_unclosed(client: object, what: str, lost: str) -> None:
    """The warning that Python gives for files and sockets which are dropped without close()."""
    import warnings

    warnings.warn(f"unclosed {what}{lost}", ResourceWarning, stacklevel=3, source=client)


def records(count: int) -> str:
    return f"{count} record{'' if count == 1 else 's'}"


def _logger() -> logging.Logger:
    import logging

    return logging.getLogger("ixion.clients")
