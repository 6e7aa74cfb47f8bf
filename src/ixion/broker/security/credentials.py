"""The SCRAM credentials of all users, from the metadata: `/config/users/NAME` has one setting per mechanism."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ixion.language.sasl.scram import ScramCredential

logger = logging.getLogger(__name__)


class ScramCredentials:
    def __init__(self) -> None:
        self.users: dict[str, dict[str, ScramCredential]] = {}  # by user, then by mechanism
        self._all: dict[str, list[ScramCredential]] = {}  # by mechanism, in the order of the users

    def take(self, user: str, config: Mapping[str, str]) -> None:
        """Apply changed settings of a user. An invalid credential is logged and ignored."""
        from ixion.language.sasl.scram import MECHANISMS, parse_credential  # only a broker with users needs it

        known: dict[str, ScramCredential] = {}
        for mechanism in MECHANISMS:
            if mechanism in config:
                try:
                    known[mechanism] = parse_credential(config[mechanism])
                except ValueError:
                    logger.error("the %s credential of user %s in the metadata is invalid", mechanism, user)
        self._all.clear()
        if known:
            self.users[user] = known
        else:
            self.users.pop(user, None)

    def all(self, mechanism: str) -> list[ScramCredential]:
        """The credentials of all users, in the order of their names."""
        found = self._all.get(mechanism)
        if found is None:
            names = sorted(self.users)
            found = [self.users[name][mechanism] for name in names if mechanism in self.users[name]]
            self._all[mechanism] = found
        return found

    def find(self, user: str, mechanism: str) -> ScramCredential | None:
        return self.users.get(user, {}).get(mechanism)
