"""Users of the PLAIN mechanism, in the text that Kafka takes them from:

org.apache.kafka.common.security.plain.PlainLoginModule required
    username="admin" password="admin-secret" user_admin="admin-secret" user_alice="alice-secret";
"""

from __future__ import annotations

import re
from typing import Final

_OPTION: Final = re.compile(r'\s+([\w.-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s";]+))')
_MODULE: Final = re.compile(r"\s*[\w.$]*PlainLoginModule\s+required")
USER: Final = "user_"


def plain_users(text: str) -> dict[str, str]:
    """Passwords by name. ValueError says what is wrong; it never shows the text, which holds passwords."""
    found = _MODULE.match(text)
    if found is None:
        raise ValueError("it starts with org.apache.kafka.common.security.plain.PlainLoginModule required")
    position = found.end()
    options: dict[str, str] = {}
    while (option := _OPTION.match(text, position)) is not None:
        quoted = option[2]
        options[option[1]] = re.sub(r"\\(.)", r"\1", quoted) if quoted is not None else option[3]
        position = option.end()
    if text[position:].strip() != ";":
        raise ValueError('it goes on with user_NAME="password" for each user, and ends with a semicolon')
    return {name.removeprefix(USER): value for name, value in options.items() if name.startswith(USER)}
