"""Parses JAAS settings: the users of PLAIN, and the login of this broker to other brokers, in Kafka's syntax:

org.apache.kafka.common.security.plain.PlainLoginModule required
    username="admin" password="admin-secret" user_admin="admin-secret" user_alice="alice-secret";

The login to ZooKeeper is the same with another module, alone or as the section Client of a file that names several:

Client {
    org.apache.zookeeper.server.auth.DigestLoginModule required username="kafka" password="kafka-secret";
};
"""

from __future__ import annotations

import re
from typing import Final

_OPTION: Final = re.compile(r'\s+([\w.-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s";]+))')
_MODULE: Final = re.compile(r"\s*[\w.$]*(Plain|Scram|OAuthBearer|Digest)LoginModule\s+required")
_KAFKA: Final = "org.apache.kafka.common.security."
_NAMES: Final = {
    "Digest": "org.apache.zookeeper.server.auth.DigestLoginModule",
    "OAuthBearer": f"{_KAFKA}oauthbearer.OAuthBearerLoginModule",
    "Plain": f"{_KAFKA}plain.PlainLoginModule",
    "Scram": f"{_KAFKA}scram.ScramLoginModule",
}
_NO_TEXT: Final = r'(?:[^"{}/]|"(?:[^"\\]|\\.)*"|/(?![/*]))*'
_COMMENT: Final = re.compile(r'("(?:[^"\\]|\\.)*")|//[^\n]*|/\*.*?\*/', re.DOTALL)
_CLIENT: Final = re.compile(r"(?:^|[\s;])Client\s*\{(" + _NO_TEXT + r")\}\s*;")
USER: Final = "user_"


def plain_users(text: str) -> dict[str, str]:
    """Passwords by name. ValueError with the reason, without the text, which contains passwords."""
    options = _options(text, "Plain", 'user_NAME="password" for each user')
    return {name.removeprefix(USER): value for name, value in options.items() if name.startswith(USER)}


def login_of(text: str, mechanism: str) -> tuple[str, str]:
    """The name and the password with which this broker logs in. ValueError as in `plain_users`."""
    options = _options(text, "Plain" if mechanism == "PLAIN" else "Scram", 'username="NAME" password="password"')
    name, password = options.get("username", ""), options.get("password", "")
    if not name or not password:
        raise ValueError('it must have username="NAME" and password="password", to log in to other brokers')
    return name, password


def zookeeper_login_of(text: str) -> tuple[str, str]:
    """The name and the password with which this broker logs in to ZooKeeper. ValueError as in `plain_users`."""
    options = _options(text, "Digest", 'username="NAME" password="password"')
    name, password = options.get("username", ""), options.get("password", "")
    if not name or not password:
        raise ValueError('it must have username="NAME" and password="password", to log in to ZooKeeper')
    return name, password


def client_section(text: str) -> str:
    """The section Client of a JAAS file, as ZooKeeper's clients in Java find it. ValueError if there is none."""
    found = _CLIENT.search(_COMMENT.sub(lambda match: match[1] or " ", text))
    if found is None:
        raise ValueError("it must have a section Client { … };")
    return found[1]


def check_bearer_module(text: str) -> None:
    """For OAUTHBEARER no options are allowed: the token is in a file, so they would have no effect. ValueError."""
    if _options(text, "OAuthBearer", "nothing else"):
        raise ValueError("it must have no options: sasl.oauthbearer.token.endpoint.url names the file with the token")


def _options(text: str, module: str, wanted: str) -> dict[str, str]:
    found = _MODULE.match(text)
    if found is None or found[1] != module:
        raise ValueError(f"it must start with {_NAMES[module]} required")
    position = found.end()
    options: dict[str, str] = {}
    while (option := _OPTION.match(text, position)) is not None:
        quoted = option[2]
        options[option[1]] = re.sub(r"\\(.)", r"\1", quoted) if quoted is not None else option[3]
        position = option.end()
    if text[position:].strip() != ";":
        raise ValueError(f"it must continue with {wanted}, and end with a semicolon")
    return options
