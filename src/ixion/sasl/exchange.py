"""What every mechanism is to the broker: a conversation that ends with a user, or with a refusal."""

from __future__ import annotations


class SaslRefusedError(Exception):
    """The client is not let in. The message is for the client: it never says which part of the proof was wrong."""


class Exchange:
    """The broker's side of one authentication."""

    def step(self, received: bytes) -> bytes:
        """The answer to what the client sent. `user` is set when the client is known."""
        raise NotImplementedError

    @property
    def user(self) -> str | None:
        """The user, once the client has proved to be that user."""
        raise NotImplementedError
