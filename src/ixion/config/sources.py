"""Loads settings from a file, the environment and the command line; later ones win.

    defaults  <  server.properties  <  IXION_LOG_DIRS=/a,/b  <  --set log.dirs=/c

An unknown name gives a warning, with the closest valid name, because files are shared with programs that have more
settings; but one that protects a Kafka is an error (`refused`). A setting without effect in ixion gives a warning too.
An invalid value is an error that names its source. A variable IXION_… is reported only if it resembles a setting,
because other programs use such variables too.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from ixion.config.broker import BrokerConfig, is_secret, listener_of, override_of
from ixion.config.errors import InvalidSettingError, UnreadableFileError
from ixion.config.ineffective import broker_settings_without_effect
from ixion.config.properties import parse_properties
from ixion.config.refused import check_not_refused
from ixion.config.rules import check_rules
from ixion.config.table import BROKER_SETTINGS, meant

PREFIX: Final = "IXION_"
_VARIABLES: Final = {PREFIX + name.upper().replace(".", "_"): name for name in BROKER_SETTINGS}


class Loaded(NamedTuple):
    given: dict[str, str]  # the settings, by name, without defaults
    config: BrokerConfig
    warnings: tuple[str, ...]


def load(
    *,
    file: str | os.PathLike[str] | None = None,
    environment: Mapping[str, str] | None = None,
    assignments: Sequence[str] = (),
) -> Loaded:
    given: dict[str, str] = {}
    warnings: list[str] = []
    for where, pairs in (
        (str(file), _from_file(file)),
        ("the environment", _from_environment(environment or {}, warnings)),
        ("--set", _from_assignments(assignments)),
    ):
        for name, value in pairs:
            if name in BROKER_SETTINGS:
                _check(name, value, where)
                given[name] = value
            elif listener_of(name) or override_of(name)[0]:
                given[name] = value
            elif is_of_kraft(name):
                # Without these a broker would start alone, with its own metadata.
                raise InvalidSettingError(name, value, "left out: ixion does not run in KRaft mode")
            else:
                check_not_refused(name, value, where)
                warnings.append(f"unknown setting {name} in {where}{meant(name)}")
    config = BrokerConfig(given)
    check_rules(config)
    idle = broker_settings_without_effect(given)
    if idle:
        warnings.append(f"settings without effect in ixion: {', '.join(idle)}")
    return Loaded(given=given, config=config, warnings=tuple(warnings))


def exposed(assignments: Sequence[str]) -> list[str]:
    """A warning for each secret on a command line."""
    return [
        f"{name} is on a command line, which every user of this machine can read: use a file or a variable"
        for name, _ in _from_assignments(assignments)
        if is_secret(name)
    ]


def is_of_kraft(name: str) -> bool:
    return name == "process.roles" or name.startswith("controller.quorum.")


def _from_file(file: str | os.PathLike[str] | None) -> Iterable[tuple[str, str]]:
    if file is None:
        return ()
    try:
        with open(file, encoding="utf-8") as opened:
            return parse_properties(opened.read()).items()
    except OSError as error:
        raise UnreadableFileError(str(file), error.strerror or str(error)) from None
    except ValueError as error:
        raise UnreadableFileError(str(file), str(error)) from None


def _from_environment(environment: Mapping[str, str], warnings: list[str]) -> Iterable[tuple[str, str]]:
    for variable, value in environment.items():
        if variable in _VARIABLES:
            yield _VARIABLES[variable], value
        elif is_of_kraft(name := variable.removeprefix(PREFIX).lower().replace("_", ".")):
            yield name, value
        elif variable.startswith(PREFIX):
            hint = meant(variable, _VARIABLES, likeness=0.9)
            if hint:
                warnings.append(f"unknown setting {variable} in the environment{hint}")


def _from_assignments(assignments: Sequence[str]) -> Iterable[tuple[str, str]]:
    for assignment in assignments:
        name, found, value = assignment.partition("=")
        if not found or not name.strip():
            raise InvalidSettingError("--set", assignment, "name=value")
        yield name.strip(), value


def _check(name: str, value: str, where: str) -> None:
    try:
        BROKER_SETTINGS[name].parse(value)
    except InvalidSettingError as error:
        raise error.found_in(where) from None
