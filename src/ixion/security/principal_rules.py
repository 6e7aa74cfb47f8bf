"""ssl.principal.mapping.rules: users from the subjects of certificates (KIP-371).

    RULE:^CN=(.*?),OU=ServiceUsers.*$/$1/        CN=kafka,OU=ServiceUsers,O=org   is User:kafka
    RULE:^CN=(.*?),.*$/$1@org/L                  CN=Alice,O=org                   is User:alice@org
    DEFAULT                                      whatever else                    is User:CN=…

Rules are tried in their order, and the first whose pattern is the whole subject decides. A client whose subject no rule
is about is not let in.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

DEFAULT: Final = "DEFAULT"
LONGEST: Final = 4_096  # characters of a subject that a pattern is tried on
_RULE: Final = re.compile(r"\s*(?:(DEFAULT)|RULE:((?:\\.|[^\\/])*)/((?:\\.|[^\\/])*)/([LU]?))\s*(?:,|\n|$)")

Rule = Callable[[str], str | None]  # the name for a subject; None: the rule is not about it


class NoRuleError(Exception):
    """No rule is about the subject of a certificate."""


class PrincipalRules:
    def __init__(self, text: str) -> None:
        """ValueError says which rule cannot be read."""
        self._rules: list[Rule] = []
        position = 0
        while position < len(text):
            found = _RULE.match(text, position)
            if found is None:
                raise ValueError(f"cannot be read from {text[position:][:60]!r} on")
            self._rules.append(_rule(found))
            position = found.end()

    def name_of(self, subject: str) -> str:
        """The name of the user. NoRuleError if no rule is about the subject."""
        for rule in self._rules:
            name = rule(subject)
            if name is not None:
                return name
        raise NoRuleError(f"no rule of ssl.principal.mapping.rules is about the certificate of {subject[:200]!r}")


def _rule(found: re.Match[str]) -> Rule:
    if found[1]:
        return lambda subject: subject
    try:
        pattern = re.compile(found[2].replace(r"\/", "/"))
    except re.error as error:
        raise ValueError(f"{found[2]!r} is no pattern: {error}") from None
    # Java writes groups as $1; a number beyond the groups is text.
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
