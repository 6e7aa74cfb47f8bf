"""Python's loggers with Kafka's names of log levels, for `kafka-configs --entity-type broker-loggers`.

A level is lost when the process ends. A logger without its own level inherits that of the nearest parent; `root` is the
parent of all. Deleting a level makes the logger inherit again; only the root must keep its level.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Final

from ixion.language.model.errors import ErrorCode, KafkaError

ROOT: Final = "root"
LEVELS: Final[Mapping[str, int]] = {"FATAL": 50, "ERROR": 40, "WARN": 30, "INFO": 20, "DEBUG": 10, "TRACE": 5}


def logger_levels() -> dict[str, str]:
    """The effective level of each logger, and of their parents, even those that do not exist yet."""
    names = sorted(logging.root.manager.loggerDict)
    levels = {name: _name(logging.getLogger(name).getEffectiveLevel()) for name in names}
    return {ROOT: _name(logging.root.level), **levels}


def check_level(name: str, level: str | None) -> None:
    """`level` None: the logger inherits its level."""
    if name not in logger_levels():
        raise KafkaError(ErrorCode.INVALID_CONFIG, f"there is no logger '{name}'")
    if level is None:
        if name == ROOT:
            raise KafkaError(ErrorCode.INVALID_REQUEST, "the root logger must keep a level")
    elif level not in LEVELS:
        raise KafkaError(
            ErrorCode.INVALID_CONFIG, f"'{level}' is not a level for logger '{name}'; levels are {', '.join(LEVELS)}"
        )


def set_level(name: str, level: str | None) -> None:
    logger = logging.root if name == ROOT else logging.getLogger(name)
    logger.setLevel(logging.NOTSET if level is None else LEVELS[level])


def _name(level: int) -> str:
    """The name of the highest level up to `level`: Python allows any number."""
    return next((name for name, number in LEVELS.items() if level >= number), "TRACE")
