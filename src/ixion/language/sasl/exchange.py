"""The interface of every mechanism: an exchange of messages that ends with a user or a refusal, for each side."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import asyncio


class SaslRefusedError(Exception):
    """Authentication failed. The message is for the client; it does not say which part of the proof was wrong."""


class Exchange:
    """The broker's side of one authentication."""

    def prepare(self, received: bytes) -> asyncio.Future[Any] | None:  # noqa: ARG002
        """Start long work that `step` with this message needs; wait for the future first. None: call `step` now."""
        return None

    def step(self, received: bytes) -> bytes:
        """The response to the client's message. `user` is set once the client is authenticated."""
        raise NotImplementedError

    @property
    def user(self) -> str | None:
        """The user, once the client is authenticated."""
        raise NotImplementedError

    @property
    def expires_ms(self) -> int | None:
        """When the proof expires, in milliseconds since 1970; None: never."""
        return None

    @property
    def by_token(self) -> bool:
        """Whether the proof was a delegation token."""
        return False


class ClientExchange:
    """The client's side of one authentication."""

    def prepare(self, received: bytes) -> Callable[[], object] | None:  # noqa: ARG002
        """Long work that `step` with this message would do, to be done before on any thread; None: nothing."""
        return None

    def first(self) -> bytes:
        """The client's first message."""
        raise NotImplementedError

    def step(self, received: bytes) -> bytes | None:
        """The response to the broker's message; None at the end. SaslRefusedError if the broker fails its own proof."""
        raise NotImplementedError
