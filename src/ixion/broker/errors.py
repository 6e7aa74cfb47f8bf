"""Why a broker does not start. Each is one line for whoever started it; nothing on the disk has changed."""

from __future__ import annotations


class StartupError(Exception):
    """The message says what is wrong and what to do about it."""


class InconsistentBrokerMetadataError(StartupError):
    """The log directories are not all of one broker."""


class InconsistentClusterIdError(StartupError):
    """The log directories are of another cluster."""


class InconsistentBrokerIdError(StartupError):
    """The log directories are of another broker than the one that is configured."""
