"""Python's loggers under the names of Kafka's log levels: what `kafka-configs --entity-type broker-loggers` sees.

A level holds until the process ends. A logger without one of its own has that of the nearest above it; `root` is above
all. Deleting a level lets the logger follow again; only the root must keep one.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Final

from ixion.model.errors import ErrorCode, KafkaError

ROOT: Final = "root"
LEVELS: Final[Mapping[str, int]] = {"FATAL": 50, "ERROR": 40, "WARN": 30, "INFO": 20, "DEBUG": 10, "TRACE": 5}


def logger_levels() -> dict[str, str]:
    """The level in force for each logger there is, and for those above them, even those not asked for yet."""
    names = sorted(logging.root.manager.loggerDict)
    levels = {name: _name(logging.getLogger(name).getEffectiveLevel()) for name in names}
    return {ROOT: _name(logging.root.level), **levels}


def check_level(name: str, level: str | None) -> None:
    """`level` None: the logger is to follow the one above it."""
    if name not in logger_levels():
        raise KafkaError(ErrorCode.INVALID_CONFIG, f"there is no logger '{name}'")
    if level is None:
        if name == ROOT:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "the root logger must keep a level")
    elif level not in LEVELS:
        raise KafkaError(
            ErrorCode.INVALID_CONFIG, f"'{level}' is no level for logger '{name}'; levels are {', '.join(LEVELS)}"
        )


def set_level(name: str, level: str | None) -> None:
    logger = logging.root if name == ROOT else logging.getLogger(name)
    logger.setLevel(logging.NOTSET if level is None else LEVELS[level])


def _name(level: int) -> str:
    """Python allows any number: it is called after the highest level that it reaches."""
    return next((name for name, number in LEVELS.items() if level >= number), "TRACE")
