"""Why a broker does not start: one line for the user. Nothing on the disk has changed."""

from __future__ import annotations


class StartupError(Exception):
    """The message says what is wrong and what to do about it."""


class InconsistentBrokerMetadataError(StartupError):
    """The log directories belong to different brokers."""


class InconsistentClusterIdError(StartupError):
    """The log directories belong to another cluster."""


class InconsistentBrokerIdError(StartupError):
    """The log directories belong to another broker than the configured one."""
