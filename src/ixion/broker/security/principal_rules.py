"""ssl.principal.mapping.rules: map the subjects of certificates to users (KIP-371).

    RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/        CN=kafka,OU=ServiceUsers,O=org   is User:kafka
    RULE:^CN=(.*?),.*$/$1@org/L                  CN=Alice,O=org                   is User:alice@org
    DEFAULT                                      any other subject                is User:CN=…

The first rule whose pattern matches the whole subject decides. If no rule matches, the client is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

DEFAULT: Final = "DEFAULT"
LONGEST: Final = 4_096  # characters of a subject that a pattern is tried on
_RULE: Final = re.compile(r"\s*(?:(DEFAULT)|RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?))\s*(?:,|\n|$)")

Rule = Callable[[str], str | None]  # the name for a subject; None: the rule does not match


class NoRuleError(Exception):
    """No rule matches the subject of a certificate."""


class PrincipalRules:
    def __init__(self, text: str) -> None:
        """ValueError shows the rule that cannot be parsed."""
        self._rules: list[Rule] = []
        position = 0
        while position < len(text):
            found = _RULE.match(text, position)
            if found is None:
                raise ValueError(f"cannot be parsed from {text[position:][:60]!r} on")
            self._rules.append(_rule(found))
            position = found.end()

    def name_of(self, subject: str) -> str:
        """The name of the user. NoRuleError if no rule matches the subject."""
        for rule in self._rules:
            name = rule(subject)
            if name is not None:
                return name
        raise NoRuleError(f"no rule of ssl.principal.mapping.rules matches the certificate of {subject[:200]!r}")


def _rule(found: re.Match[str]) -> Rule:
    if found[1]:
        return lambda subject: subject
    try:
        pattern = re.compile(found[2].replace(r"\/", "/"))
    except re.error as error:
        raise ValueError(f"{found[2]!r} is not a pattern: {error}") from None
    # Java's syntax for groups is $1; a number without a group is text.
    parts = re.split(r"\$(\d)", found[3].replace(r"\/", "/"))

    def apply(subject: str) -> str | None:
        match = pattern.fullmatch(subject[: LONGEST + 1]) if len(subject) <= LONGEST else None
        if match is None:
            return None
        texts = [
            text if place % 2 == 0 else (match[int(text)] or "") if int(text) <= pattern.groups else f"${text}"
            for place, text in enumerate(parts)
        ]
        name = "".join(texts)
        return name.lower() if found[4] == "L" else name.upper() if found[4] == "U" else name

    return apply
