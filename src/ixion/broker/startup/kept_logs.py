"""Whether the logs of this broker have kept everything, as it says when it registers in a cluster (`log.kept`)."""

from __future__ import annotations

import logging

from ixion.broker.log.kept import forget_kept, has_been_kept, read_kept_since, write_kept_since
from ixion.broker.log.manager import LogManager

logger = logging.getLogger(__name__)


class KeptLogs:
    """Its methods block."""

    def __init__(self, logs: LogManager, boot: str) -> None:
        self._logs = logs
        self._boot = boot
        self._paths = [directory.path for directory in logs.directories]
        self.were_ours = False  # ixion has served these directories in a cluster, in this version or another
        self._doubt = False  # a directory has failed in this life
        self._since: int | None = None

    @property
    def since(self) -> int | None:
        """The first broker epoch since which nothing was lost; None if that is not known."""
        return None if self._doubt else self._since

    def load(self) -> None:
        """Loads the logs, and finds out whether they are as the last life left them."""
        self.were_ours = has_been_kept(self._paths)
        since = read_kept_since(self._logs.files, self._paths, self._boot)
        self._logs.load()
        if since is not None and self._is_all_there():
            self._since = since
        else:
            self._forget()

    def _is_all_there(self) -> bool:
        logs = self._logs
        return (
            not self._doubt
            and not logs.unreadable
            and not any(directory.state.offline or directory.unloaded for directory in logs.directories)
            and not any(log.aside.has_taken for log in [*logs.logs.values(), *logs.future_logs.values()])
        )

    def registered(self, epoch: int) -> None:
        """After the first registration of this life."""
        if epoch < 0:
            return  # gone again
        if self._since is None:
            self._since = epoch
        for directory in self._logs.directories:
            try:
                write_kept_since(self._logs.files, directory.path, self._boot, self._since, len(self._paths))
            except OSError as error:
                directory.state.fail("writing since when the logs are complete", error)
        if self._doubt:
            self._forget()

    def directory_failed(self) -> None:
        """The failed directory may have lost records. May be called at any time, by any thread."""
        self._doubt = True
        self._forget()

    def _forget(self) -> None:
        for path in self._paths:
            try:
                forget_kept(self._logs.files, path)
            except OSError as error:
                logger.warning("%s: the logs cannot be marked as incomplete: %s", path, error)
