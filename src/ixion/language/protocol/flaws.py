"""Errors of messages: bytes of a peer (`DecodeError`) or a value of our own (`EncodeError`).

Each structure and array that an error passes through adds a step to its path, so the error message names the place:
`topics[2].partitions[0].records`.
"""

from __future__ import annotations


class Flaw(Exception):  # noqa: N818 (the two that are raised end in Error)
    """A reason, and the path of the field."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.api = "message"
        self.version = -1
        self.path = ""

    def within(self, step: str) -> None:
        """Put a step in front of the path: a field name, or an index in brackets."""
        if self.path and not self.path.startswith("["):
            self.path = f"{step}.{self.path}"
        else:
            self.path = step + self.path

    def of(self, api: str, version: int) -> None:
        """Set the message that has the error; the first call counts."""
        if self.version < 0:
            self.api = api
            self.version = version

    def place(self) -> str:
        message = self.api if self.version < 0 else f"{self.api} v{self.version}"
        return f"{message}, {self.path}" if self.path else message

    def __str__(self) -> str:
        return f"{self.place()}: {self.reason}"


class DecodeError(Flaw):
    """Bytes that are not the message they claim to be. `offset` counts from the start of the buffer."""

    def __init__(self, reason: str, offset: int) -> None:
        super().__init__(reason)
        self.offset = offset

    def __str__(self) -> str:
        return f"{self.place()}, byte {self.offset}: {self.reason}"


class EncodeError(Flaw):
    """A value that the message cannot contain in this version."""


class TooLongError(Exception):
    """A valid message with too many elements to read or write without a pause: the caller does it in steps."""


class UnsupportedVersionError(Exception):
    """A key or version that no table describes. Kafka answers UNSUPPORTED_VERSION, or closes the connection.

    `key` is the key of an API, or the name of a stored message.
    """

    def __init__(self, key: int | str, version: int) -> None:
        super().__init__(key, version)
        self.key = key
        self.version = version

    def __str__(self) -> str:
        if isinstance(self.key, str):
            return f"{self.key} version {self.version} is not supported"
        return f"API key {self.key} version {self.version} is not supported"
