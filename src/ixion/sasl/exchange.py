"""What every mechanism is: a conversation that ends with a user or a refusal, as each side sees it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import asyncio


class SaslRefusedError(Exception):
    """The client is not let in. The message is for the client: it never says which part of the proof was wrong."""


class Exchange:
    """The broker's side of one authentication."""

    def prepare(self, received: bytes) -> asyncio.Future[Any] | None:  # noqa: ARG002
        """What must be done before `step` is called with this message, because it takes long; None: nothing."""
        return None

    def step(self, received: bytes) -> bytes:
        """The answer to what the client sent. `user` is set when the client is known."""
        raise NotImplementedError

    @property
    def user(self) -> str | None:
        """The user, once the client has proved to be that user."""
        raise NotImplementedError

    @property
    def expires_ms(self) -> int | None:
        """When the proof is no longer good, in milliseconds since 1970; None: it stays good."""
        return None

    @property
    def by_token(self) -> bool:
        """Whether the proof was a delegation token."""
        return False


class ClientExchange:
    """The client's side of one authentication."""

    def prepare(self, received: bytes) -> Callable[[], object] | None:  # noqa: ARG002
        """Long work that `step` with this message has to do, and need not if it was done before, on any thread."""
        return None

    def first(self) -> bytes:
        """What the client sends first."""
        raise NotImplementedError

    def step(self, received: bytes) -> bytes | None:
        """The answer to what the broker sent; None when all is said. SaslRefusedError if the broker is no such one."""
        raise NotImplementedError
