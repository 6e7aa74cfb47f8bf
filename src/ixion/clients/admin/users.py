"""Users with SCRAM passwords. The client salts the password, so a broker gets only the salted one."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Final, NamedTuple

from ixion.clients.admin.plan import ANY, Call, Plan, Work
from ixion.clients.admin.results import Results
from ixion.clients.admin.routes import Spread, fault_of, one, spread, to_controller
from ixion.language.model.errors import KafkaError
from ixion.language.protocol.messages.k50_describe_user_scram_credentials import (
    DescribeUserScramCredentialsRequest,
    DescribeUserScramCredentialsResponse,
    UserName,
)
from ixion.language.protocol.notation import Struct
from ixion.language.protocol.registry import ApiKey

NUMBERS: Final = {"SCRAM-SHA-256": 1, "SCRAM-SHA-512": 2}
MECHANISMS: Final = {number: name for name, number in NUMBERS.items()}
ITERATIONS: Final = 4_096
SALT_BYTES: Final = 16


class ScramUpsertion:
    """Give a user this password for a mechanism."""

    def __init__(
        self, user: str, password: str, mechanism: str = "SCRAM-SHA-512", *, iterations: int = ITERATIONS
    ) -> None:
        """ValueError for an unknown mechanism, or for fewer than one iteration."""
        if mechanism not in NUMBERS:
            raise ValueError(f"unknown SCRAM mechanism {mechanism!r}; supported: {', '.join(NUMBERS)}")
        if iterations < 1:
            raise ValueError(f"iterations must be at least 1, not {iterations}")
        self.user = user
        self.mechanism = mechanism
        self.iterations = iterations
        self.salt = os.urandom(SALT_BYTES)
        self._password = password
        self._salted: bytes | None = None

    @property
    def salted_password(self) -> bytes:
        """Slow the first time, by design: some milliseconds of processor time, more with more iterations."""
        if self._salted is None:
            from ixion.language.sasl.scram import salted_password

            self._salted = salted_password(self.mechanism, self._password, self.salt, self.iterations)
        return self._salted

    def __repr__(self) -> str:
        return f"<{self.mechanism} password for {self.user!r}>"


class ScramDeletion(NamedTuple):
    """Remove a user's password of a mechanism."""

    user: str
    mechanism: str = "SCRAM-SHA-512"


class ScramMechanism(NamedTuple):
    mechanism: str
    iterations: int


def describe_user_scram_credentials(
    call: Call, users: Iterable[str] | None = None
) -> Plan[Results[str, list[ScramMechanism]]]:
    """The SCRAM mechanisms of these users, of all if None. RESOURCE_NOT_FOUND for a user without any."""
    names = None if users is None else tuple(UserName(name=name) for name in dict.fromkeys(users))
    answer = yield from one(
        call,
        ANY,
        ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS,
        lambda _: DescribeUserScramCredentialsRequest(users=names),
        DescribeUserScramCredentialsResponse,
        check=lambda found: fault_of(found.error_code, found.error_message, "the users"),
    )
    results: Results[str, list[ScramMechanism]] = Results()
    for each in answer.results:
        fault = fault_of(each.error_code, each.error_message, f"user {each.user!r}")
        if fault is None:
            results.done[each.user] = sorted(
                ScramMechanism(MECHANISMS.get(info.mechanism, "unknown"), info.iterations)
                for info in each.credential_infos
            )
        else:
            results.faults[each.user] = fault
    return results


def alter_user_scram_credentials(
    call: Call, changes: Iterable[ScramUpsertion | ScramDeletion]
) -> Plan[Results[str, None]]:
    """Change passwords. All changes of one user are made together, or none."""
    from ixion.language.protocol.messages.k51_alter_user_scram_credentials import (
        AlterUserScramCredentialsRequest,
        AlterUserScramCredentialsResponse,
        ScramCredentialDeletion,
        ScramCredentialUpsertion,
    )

    wanted = list(changes)
    yield Work(lambda: [each.salted_password for each in wanted if isinstance(each, ScramUpsertion)])

    def make(users: list[str], _: int) -> Struct:
        return AlterUserScramCredentialsRequest(
            deletions=tuple(
                ScramCredentialDeletion(name=each.user, mechanism=NUMBERS.get(each.mechanism, 0))
                for each in wanted
                if isinstance(each, ScramDeletion) and each.user in users
            ),
            upsertions=tuple(
                ScramCredentialUpsertion(
                    name=each.user,
                    mechanism=NUMBERS[each.mechanism],
                    iterations=each.iterations,
                    salt=each.salt,
                    salted_password=each.salted_password,
                )
                for each in wanted
                if isinstance(each, ScramUpsertion) and each.user in users
            ),
        )

    def read(answer: Struct) -> dict[str, KafkaError | None]:
        assert isinstance(answer, AlterUserScramCredentialsResponse)
        return {
            each.user: fault_of(each.error_code, each.error_message, f"user {each.user!r}") for each in answer.results
        }

    how = Spread(ApiKey.ALTER_USER_SCRAM_CREDENTIALS)
    users = [each.user for each in wanted]
    results: Results[str, None] = yield from spread(call, how, users, to_controller, make, read)
    return results
