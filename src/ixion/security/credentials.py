"""The SCRAM credentials of all users, from the metadata: `/config/users/NAME` has one setting per mechanism."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ixion.sasl.scram import ScramCredential

logger = logging.getLogger(__name__)


class ScramCredentials:
    def __init__(self) -> None:
        self.users: dict[str, dict[str, ScramCredential]] = {}  # by user, then by mechanism

    def take(self, user: str, config: Mapping[str, str]) -> None:
        """Apply changed settings of a user. An invalid credential is logged and ignored."""
        from ixion.sasl.scram import MECHANISMS, parse_credential  # only a broker with users needs it

        known: dict[str, ScramCredential] = {}
        for mechanism in MECHANISMS:
            if mechanism in config:
                try:
                    known[mechanism] = parse_credential(config[mechanism])
                except ValueError:
                    logger.error("the %s credential of user %s in the metadata is invalid", mechanism, user)
        if known:
            self.users[user] = known
        else:
            self.users.pop(user, None)

    def find(self, user: str, mechanism: str) -> ScramCredential | None:
        return self.users.get(user, {}).get(mechanism)
