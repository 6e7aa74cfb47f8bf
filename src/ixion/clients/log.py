"""What clients write into the log of their program: faults of the code that was given to them."""

from __future__ import annotations


def log_interceptor(method: str) -> None:
    import logging  # only when something is wrong

    logging.getLogger("ixion.clients").exception("%s of an interceptor raised", method)


def log_dropped() -> None:
    import logging

    logging.getLogger("ixion.clients").warning("a consumer was dropped that nobody had closed; its group hears nothing")
