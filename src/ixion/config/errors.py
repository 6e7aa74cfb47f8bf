"""A setting that cannot be accepted."""

from __future__ import annotations

from typing import Final


class InvalidSettingError(Exception):
    """The setting, its value, and what is allowed; `where` is the file or variable it came from, if known."""

    def __init__(self, name: str, value: str, allowed: str, where: str = "") -> None:
        origin = f" (in {where})" if where else ""
        super().__init__(f"{name} is {value!r}{origin}, but must be {allowed}")
        self.name: Final = name
        self.value: Final = value
        self.allowed: Final = allowed
        self.where: Final = where

    def found_in(self, where: str) -> InvalidSettingError:
        return InvalidSettingError(self.name, self.value, self.allowed, where)


class UnreadableFileError(InvalidSettingError):
    """The file of settings cannot be opened, or is not a properties file."""

    def __init__(self, file: str, reason: str) -> None:
        super().__init__("--config", file, "a properties file")
        self.args = (f"the settings file {file} cannot be read: {reason}",)


class UnknownSettingError(InvalidSettingError):
    """A topic or group has no such setting; `hint` suggests one."""

    def __init__(self, name: str, value: str, kind: str, hint: str) -> None:
        super().__init__(name, value, f"a {kind} setting")
        self.args = (f"unknown {kind} setting {name!r}{hint}",)
