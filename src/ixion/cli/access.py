"""How a command reaches its cluster: the options for the address, TLS and login, and their combined value.

The command line comes first, then the environment, then the profile: a table of `~/.config/ixion/profiles.toml`, named
by --profile, or `default` if the file has one. A password is never on the command line: it is the first line of a file,
or typed at a prompt.
"""

from __future__ import annotations

import os
from typing import Any, Final, NamedTuple, NoReturn

from ixion.cli.command import Option, UsageError, nearest, number

HERE: Final = "127.0.0.1:9092"
PATIENCE_S: Final = 30.0
MECHANISM: Final = "SCRAM-SHA-512"
CONNECTION: Final = "Connection"  # where help pages list them

BOOTSTRAP: Final = Option(
    "bootstrap",
    "--bootstrap -b",
    f"A broker of the cluster, or several with commas (default: {HERE}).",
    metavar="HOST:PORT",
    environment="IXION_BOOTSTRAP",
    hidden="--bootstrap-server --brokers",
    section=CONNECTION,
)
TIMEOUT: Final = Option(
    "timeout",
    "--timeout",
    f"How long to try (default: {PATIENCE_S:g}).",
    metavar="SECONDS",
    kind=number,
    section=CONNECTION,
)
PROFILE: Final = Option(
    "profile",
    "--profile",
    "A table of ~/.config/ixion/profiles.toml with these options.",
    metavar="NAME",
    environment="IXION_PROFILE",
    section=CONNECTION,
)
SECURITY: Final = (
    Option("tls", "--tls", "Connect over TLS, and trust the authorities of the system.", section=CONNECTION),
    Option(
        "tls_ca",
        "--tls-ca",
        "Connect over TLS, and trust the authorities in this PEM file.",
        metavar="FILE",
        complete="file",
        environment="IXION_TLS_CA",
        section=CONNECTION,
    ),
    Option(
        "tls_cert",
        "--tls-cert",
        "Show the certificate in this PEM file; it holds the private key, too.",
        metavar="FILE",
        complete="file",
        environment="IXION_TLS_CERT",
        section=CONNECTION,
    ),
    Option(
        "tls_any_host", "--tls-any-host", "Accept a certificate that names another host.", section=CONNECTION
    ),
    Option(
        "user",
        "--user",
        "Log in as this user.",
        metavar="NAME",
        environment="IXION_USER",
        section=CONNECTION,
    ),
    Option(
        "password_file",
        "--password-file",
        "Its first line is the password (default: ask for it).",
        metavar="FILE",
        complete="file",
        environment="IXION_PASSWORD_FILE",
        section=CONNECTION,
    ),
    Option(
        "token_file",
        "--token-file",
        "Log in with the delegation token or the signed token (JWT) in this file.",
        metavar="FILE",
        complete="file",
        environment="IXION_TOKEN_FILE",
        section=CONNECTION,
    ),
    Option(
        "mechanism",
        "--mechanism",
        f"PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512 (default: {MECHANISM}).",
        metavar="NAME",
        complete="PLAIN|SCRAM-SHA-256|SCRAM-SHA-512",
        environment="IXION_MECHANISM",
        section=CONNECTION,
    ),
)  # fmt: skip
CLUSTER: Final = (BOOTSTRAP, TIMEOUT, PROFILE, *SECURITY)
NAMES: Final = frozenset(option.name for option in CLUSTER)


class Access(NamedTuple):
    """`security` holds settings of our clients, by their names."""

    bootstrap: str
    timeout_s: float
    security: dict[str, Any]

    def __repr__(self) -> str:
        return f"<access to {self.bootstrap}>"  # never a password


def fold(values: dict[str, Any]) -> dict[str, Any]:
    """Combine the connection options into one keyword, `access`; the others stay as they are."""
    named = {name: value for name, value in values.items() if name in NAMES}
    given = {name: value for name, value in named.items() if value is not None and value is not False}
    others = {name: value for name, value in values.items() if name not in NAMES}
    return {**others, "access": read_access(given)}


def read_access(given: dict[str, Any], *, may_ask: bool = True) -> Access:
    """UsageError for options that contradict each other. `may_ask`: whether to prompt for a password."""
    name = given.pop("profile", None)
    found: dict[str, Any] = {**read_profile(name), **given}
    timeout_s = found.get("timeout", PATIENCE_S)
    if not timeout_s > 0:
        raise UsageError(f"--timeout must be more than 0 seconds, not {timeout_s:g}")
    return Access(found.get("bootstrap", HERE), timeout_s, read_security(found, may_ask))


def read_security(found: dict[str, Any], may_ask: bool) -> dict[str, Any]:
    settings: dict[str, Any] = {}
    has_tls = any(found.get(name) for name in ("tls", "tls_ca", "tls_cert", "tls_any_host"))
    user, token_file = found.get("user"), found.get("token_file")
    logs_in = user is not None or token_file is not None
    if has_tls or logs_in:
        protocol = ("SASL_" if logs_in else "") + ("SSL" if has_tls else "")
        settings["security_protocol"] = protocol if has_tls else "SASL_PLAINTEXT"
    if found.get("tls_ca"):
        settings["ssl_truststore_location"] = os.path.expanduser(found["tls_ca"])
    if found.get("tls_cert"):
        settings["ssl_keystore_location"] = os.path.expanduser(found["tls_cert"])
    if found.get("tls_any_host"):
        settings["ssl_endpoint_identification_algorithm"] = ""
    if token_file is not None:
        if user is not None or "password_file" in found:
            raise UsageError("--token-file excludes --user and --password-file")
        settings |= read_token(token_file, found.get("mechanism", MECHANISM))
    elif user is not None:
        settings["sasl_username"] = user
        settings["sasl_mechanism"] = found.get("mechanism", MECHANISM)
        settings["sasl_password"] = found.get("password") or read_password(found.get("password_file"), user, may_ask)
    else:
        for name in ("password_file", "mechanism"):
            if name in found:
                raise UsageError(f"--{name.replace('_', '-')} needs --user")
    return settings


def read_token(path: str, mechanism: str) -> dict[str, Any]:
    """A delegation token is two lines, its id and its secret (`ixion token create`); a signed token is one line."""
    with open(os.path.expanduser(path), encoding="utf-8") as file:
        lines = file.read(1 << 20).split()
    if len(lines) == 1 and lines[0].count(".") == 2:
        return {"sasl_mechanism": "OAUTHBEARER", "sasl_oauthbearer_token": lines[0]}
    if len(lines) != 2:
        raise UsageError(f"{path} holds no token: a JWT in one line, or the id and the secret of a delegation token")
    token_id, secret = lines
    return {
        "sasl_username": token_id,
        "sasl_password": secret,
        "sasl_mechanism": mechanism,
        "sasl_tokenauth": "true",
    }


def read_password(path: str | None, user: str, may_ask: bool) -> str:
    """The first line of a file; without a file, typed at a terminal."""
    if path is None:
        import sys

        if not may_ask or not sys.stdin.isatty():
            raise UsageError(f"the password of {user!r} is missing: give --password-file")
        from getpass import getpass

        return getpass(f"password of {user}: ")
    with open(os.path.expanduser(path), encoding="utf-8") as file:
        password = file.readline().rstrip("\r\n")
    if not password:
        raise UsageError(f"the first line of {path} is empty; it should be the password")
    return password


def profiles_file() -> str:
    base = os.environ.get("XDG_CONFIG_HOME") or os.path.join(os.path.expanduser("~"), ".config")
    return os.path.join(base, "ixion", "profiles.toml")


def read_profile(name: str | None) -> dict[str, Any]:
    """The options in a profile; without a name those of `default`, if there is one."""
    path = profiles_file()
    if not os.path.exists(path):
        if name is None:
            return {}
        raise UsageError(f"there is no profile {name!r}: {path} does not exist")
    import tomllib

    try:
        with open(path, "rb") as file:
            profiles = tomllib.load(file)
            mode = os.fstat(file.fileno()).st_mode
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read: {error}") from None
    found = profiles.get(name or "default")
    if found is None and name is None:
        return {}
    if not isinstance(found, dict):
        raise UsageError(f"{path} has no profile {name!r}{nearest(name or '', list(profiles))}")
    return check_profile(found, f"profile {name or 'default'} in {path}", is_private=mode & 0o077 == 0)


def check_profile(found: dict[str, Any], where: str, *, is_private: bool) -> dict[str, Any]:
    known = {option.name: option for option in CLUSTER if option is not PROFILE}
    for name, value in found.items():
        if name == "password":
            if not is_private:
                raise UsageError(f"{where} has a password, but other users can read the file: chmod 600")
            kind: type | tuple[type, ...] = str
        elif name not in known:
            raise UsageError(f"{where}: there is no option {name!r}{nearest(name, [*known, 'password'])}")
        else:
            kind = (int, float) if name == "timeout" else str if known[name].metavar else bool
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            wrong(where, name, kind)
    return found


def wrong(where: str, name: str, kind: object) -> NoReturn:
    expected = {str: "text", bool: "true or false"}.get(kind, "a number") if isinstance(kind, type) else "a number"
    raise UsageError(f"{where}: {name} must be {expected}")
