"""`ixion user`: add, list, remove. Users log in with SCRAM passwords.

With --data the users are in the data directory of a broker that is not running, so that the first user can exist before
the first start. A running broker locks that directory, and the command is refused.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ixion.cli.access import CLUSTER, Access
from ixion.cli.command import Argument, Command, Group, Option, UsageError, whole
from ixion.cli.options import AS_JSON, YES, administer, confirm
from ixion.cli.output import note, show_json, show_table

if TYPE_CHECKING:
    from ixion.clients.admin.users import ScramMechanism

SCRAM: Final = ("SCRAM-SHA-256", "SCRAM-SHA-512")
LEAST: Final = 4_096  # iterations that brokers accept
MOST: Final = 16_384


def add(
    name: str, only: str | None, iterations: int, new_password_file: str | None, data: str | None, access: Access
) -> None:
    if only is not None and only not in SCRAM:
        raise UsageError(f"--only is {' or '.join(SCRAM)}, not {only!r}")
    password = choose_password(name, new_password_file)
    mechanisms = SCRAM if only is None else (only,)
    if data is not None:
        from ixion.cli.user.store import add_user

        add_user(data, name, password, mechanisms, iterations)
    else:
        from ixion.clients.admin.users import ScramUpsertion, alter_user_scram_credentials

        changes = [ScramUpsertion(name, password, mechanism, iterations=iterations) for mechanism in mechanisms]
        with administer(access) as admin:
            admin.run(alter_user_scram_credentials, changes).check()
    print(f"added {name}")


def list_(as_json: bool, data: str | None, access: Access) -> None:
    found: dict[str, list[ScramMechanism]]
    if data is not None:
        from ixion.cli.user.store import list_users

        found = list_users(data)
    else:
        from ixion.clients.admin.users import describe_user_scram_credentials

        with administer(access) as admin:
            found = admin.run(describe_user_scram_credentials).check()
    rows = [(name, each.mechanism, each.iterations) for name, some in sorted(found.items()) for each in some]
    if as_json:
        show_json({"user": name, "mechanism": mechanism, "iterations": count} for name, mechanism, count in rows)
    elif not rows:
        note("there are no users; make one with: ixion user add NAME")
    else:
        show_table(("user", "mechanism", "iterations"), rows, right=("iterations",))


def remove(names: list[str], data: str | None, yes: bool, access: Access) -> None:
    confirm(f"remove {', '.join(names)}", yes)
    if data is not None:
        from ixion.cli.user.store import remove_user

        for name in names:
            remove_user(data, name)
            print(f"removed {name}")
        return
    from ixion.clients.admin.users import (
        ScramDeletion,
        alter_user_scram_credentials,
        describe_user_scram_credentials,
    )

    with administer(access) as admin:
        known = admin.run(describe_user_scram_credentials, names).check()
        changes = [ScramDeletion(name, each.mechanism) for name, some in known.items() for each in some]
        done = admin.run(alter_user_scram_credentials, changes)
    for name in done.done:
        print(f"removed {name}")
    done.check()


def choose_password(name: str, path: str | None) -> str:
    """The first line of a file, or typed twice at a terminal."""
    from ixion.cli.access import read_password

    if path is not None:
        return read_password(path, name, may_ask=False)
    import sys

    if not sys.stdin.isatty():
        raise UsageError(f"the new password of {name!r} is missing: give --new-password-file")
    from getpass import getpass

    password = getpass(f"new password of {name}: ")
    if not password:
        raise UsageError("a password has at least one character")
    if getpass("once more: ") != password:
        raise UsageError("the two passwords differ")
    return password


DATA: Final = Option(
    "data",
    "--data",
    "The data directory of a broker that is not running (default: ask the cluster).",
    metavar="DIR",
    complete="file",
)

USER: Final = Group(
    "user",
    "Add, list and remove users that log in with SCRAM passwords.",
    Command(
        "add",
        "Add a user, or change a password.",
        add,
        arguments=(Argument("name", "NAME"),),
        options=(
            Option("only", "--only", "Only for this mechanism (default: both).", metavar="SCRAM-SHA-256|512",
                   complete="|".join(SCRAM)),
            Option("iterations", "--iterations", "Iterations of the hash.", metavar="N", kind=whole(LEAST, MOST),
                   default=LEAST),
            Option("new_password_file", "--new-password-file", "Its first line is the new password (default: ask).",
                   metavar="FILE", complete="file"),
            DATA,
            *CLUSTER,
        ),
        examples=("ixion user add alice", "ixion user add alice --data ./ixion-data --new-password-file alice.txt"),
    ),
    Command("list", "List users with their mechanisms.", list_, options=(AS_JSON, DATA, *CLUSTER), aliases=("ls",)),
    Command(
        "remove",
        "Remove users. Open connections stay until they must authenticate again.",
        remove,
        arguments=(Argument("names", "NAME...", many=True),),
        options=(DATA, YES, *CLUSTER),
        aliases=("rm", "delete"),
    ),
)  # fmt: skip
