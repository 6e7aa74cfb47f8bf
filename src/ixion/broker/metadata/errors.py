"""Errors of operations on nodes, and of the store as a whole."""

from __future__ import annotations

from typing import Final


class MetadataError(Exception):
    """An operation was refused; nothing has changed.

    In a `multi`, `operation` is the index of the refused one; the others were not done either.
    """

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(f"{path}: {problem}")
        self.path: Final = path
        self.operation = 0


class NoNodeError(MetadataError):
    def __init__(self, path: str) -> None:
        super().__init__(path, "there is no such node")


class NodeExistsError(MetadataError):
    def __init__(self, path: str) -> None:
        super().__init__(path, "the node exists already")


class BadVersionError(MetadataError):
    def __init__(self, path: str, expected: int) -> None:
        super().__init__(path, f"the node is not at version {expected}")


class NotEmptyError(MetadataError):
    def __init__(self, path: str) -> None:
        super().__init__(path, "a node with children cannot be deleted")


class NoChildrenForEphemeralsError(MetadataError):
    def __init__(self, path: str) -> None:
        super().__init__(path, "an ephemeral node cannot have children")


class InvalidPathError(MetadataError):
    """The path is malformed, or the operation is not allowed on the root."""


class AccessDeniedError(MetadataError):
    def __init__(self, path: str) -> None:
        super().__init__(path, "the ACL of the node does not allow this")


class UnsupportedError(MetadataError):
    """The store does not support the operation."""


class RefusedError(MetadataError):
    """The store refused the operation for another reason."""


class TooLargeError(MetadataError):
    """The request is too large for the store."""


class ConnectionLostError(MetadataError):
    """The connection ended before the response: the write may have been done or not. Read before you repeat it."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(path, f"the connection was lost, so the outcome is unknown ({reason})")


class SessionExpiredError(MetadataError):
    """The session has ended and its ephemeral nodes are deleted; open a new session."""


class StoreUnusableError(Exception):
    """The store cannot be opened or written: in use by another process, not ours, damaged, or the disk failed."""

    def __init__(self, file: str, problem: str) -> None:
        super().__init__(f"metadata in {file}: {problem}")
        self.file: Final = file


class StoreFullError(StoreUnusableError):
    """The disk is full. Nothing has changed; reads still work, and so do writes once there is room."""
