"""`ixion token`: create, list, renew and expire delegation tokens.

A token is a secret, so it is written into a file that only its owner can read, and never printed; every command takes
that file with --token-file. Tokens are named by their ids.
"""

from __future__ import annotations

import base64
import os
import time
from typing import TYPE_CHECKING, Final

from ixion.cli.access import CLUSTER, Access
from ixion.cli.command import Argument, Command, Group, Option, UsageError, number
from ixion.cli.options import AS_JSON, YES, administer, confirm
from ixion.cli.output import note, show_json, show_table
from ixion.language.model.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from ixion.clients.admin.runner import AdminRunner
    from ixion.clients.admin.tokens import DelegationToken

HOUR_MS: Final = 3_600_000


def create(to: str | None, owner: str | None, renewer: list[str], hours: float | None, access: Access) -> None:
    from ixion.clients.admin.tokens import create_delegation_token

    if to is None:
        raise UsageError("a token is a secret, and is not printed: give --to FILE")
    lifetime_ms = -1 if hours is None else round(hours * HOUR_MS)
    if lifetime_ms == 0 or (hours is not None and hours < 0):
        raise UsageError(f"--hours must be more than 0, not {hours:g}")
    # Create the file first: a token that cannot be saved would be lost.
    file = os.open(os.path.expanduser(to), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with administer(access) as admin:
            made = admin.run(
                create_delegation_token,
                owner=None if owner is None else in_full(owner),
                renewers=[in_full(each) for each in renewer],
                max_lifetime_ms=lifetime_ms,
            )
        os.write(file, f"{made.token_id}\n{base64.b64encode(made.hmac).decode()}\n".encode())
    except BaseException:
        os.unlink(os.path.expanduser(to))
        raise
    finally:
        os.close(file)
    print(f"created {made.token_id} of {made.owner}, which expires at {when(made.expires_ms)}; its secret is in {to}")


def list_(owner: list[str], as_json: bool, access: Access) -> None:
    from ixion.clients.admin.tokens import describe_delegation_tokens

    with administer(access) as admin:
        found = admin.run(describe_delegation_tokens, [in_full(each) for each in owner] or None)
    found.sort(key=lambda each: (each.owner, each.issued_ms))
    if as_json:
        show_json(
            {
                "token": each.token_id,
                "owner": each.owner,
                "renewers": list(each.renewers),
                "issued_ms": each.issued_ms,
                "expires_ms": each.expires_ms,
                "max_ms": each.max_ms,
            }
            for each in found
        )
    elif not found:
        note("there are no delegation tokens that you may see")
    else:
        rows = [
            (each.token_id, each.owner, ",".join(each.renewers), when(each.expires_ms), when(each.max_ms))
            for each in found
        ]
        show_table(("token", "owner", "renewers", "expires", "at the latest"), rows)


def renew(token: str, hours: float | None, access: Access) -> None:
    from ixion.clients.admin.tokens import renew_delegation_token

    with administer(access) as admin:
        known = find(admin, token)
        period_ms = -1 if hours is None else round(hours * HOUR_MS)
        expires_ms = admin.run(renew_delegation_token, known.hmac, period_ms=period_ms)
    print(f"{token} expires at {when(expires_ms)}")


def expire(token: str, hours: float | None, yes: bool, access: Access) -> None:
    from ixion.clients.admin.tokens import expire_delegation_token

    confirm(f"end the token {token}", yes)
    with administer(access) as admin:
        known = find(admin, token)
        period_ms = -1 if hours is None else round(hours * HOUR_MS)
        expires_ms = admin.run(expire_delegation_token, known.hmac, period_ms=period_ms)
    print(f"removed {token}" if hours is None else f"{token} expires at {when(expires_ms)}")


def find(admin: AdminRunner, token_id: str) -> DelegationToken:
    from ixion.clients.admin.tokens import describe_delegation_tokens

    for each in admin.run(describe_delegation_tokens):
        if each.token_id == token_id:
            return each
    raise KafkaError(ErrorCode.DELEGATION_TOKEN_NOT_FOUND, f"there is no delegation token {token_id} that you may see")


def in_full(principal: str) -> str:
    return principal if ":" in principal else f"User:{principal}"


def when(time_ms: int) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(time_ms / 1_000))


def hours(text: str) -> Option:
    return Option("hours", "--hours", text, metavar="HOURS", kind=number)


TOKEN: Final = Group(
    "token",
    "Create, list, renew and expire delegation tokens.",
    Command(
        "create",
        "Create a token for the authenticated user, or for another owner.",
        create,
        options=(
            Option("to", "--to", "The file for the secret; it must not exist yet.", metavar="FILE", complete="file"),
            Option("owner", "--owner", "The user that the token authenticates (default: yourself).",
                   metavar="USER"),
            Option("renewer", "--renewer", "A user that may renew it; may be repeated.", metavar="USER", many=True),
            hours("Its maximum lifetime (default: the broker's)."),
            *CLUSTER,
        ),
        examples=("ixion token create --to job.token --renewer scheduler", "ixion topic list --token-file job.token"),
    ),
    Command(
        "list",
        "List tokens that the user may see, without their secrets.",
        list_,
        options=(
            Option("owner", "--owner", "Only tokens of this user; may be repeated.", metavar="USER", many=True),
            AS_JSON,
            *CLUSTER,
        ),
        aliases=("ls",),
    ),
    Command(
        "renew",
        "Renew a token, up to its maximum lifetime.",
        renew,
        arguments=(Argument("token", "ID"),),
        options=(hours("For how long from now (default: the broker's setting)."), *CLUSTER),
    ),
    Command(
        "expire",
        "End a token.",
        expire,
        arguments=(Argument("token", "ID"),),
        options=(hours("After this time (default: at once)."), YES, *CLUSTER),
        aliases=("rm", "remove"),
    ),
)  # fmt: skip
