"""The words of a filter expression."""

from __future__ import annotations

import json
import re
from typing import Final, NamedTuple

LONGEST: Final = 1000  # characters of an expression

_WORD: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")
_NUMBER: Final = re.compile(r"-?[0-9]{1,30}(\.[0-9]{1,30})?([eE][+-]?[0-9]{1,3})?")
_SPACE: Final = re.compile(r"\s+")
_SIGNS: Final = ("==", "!=", "<=", ">=", "<", ">", "(", ")", "[", "]", ",", ".", "*")
ALIASES: Final = {"&&": "and", "||": "or", "!": "not", "=": "=="}  # as other languages write them


class FilterError(ValueError):
    """The expression cannot be read, or costs too much; the message says where and why."""


class Token(NamedTuple):
    kind: str  # word, sign, text, number, end
    text: str
    at: int  # the character at which it begins, from 1
    value: str | int | float | None = None  # of a text or a number


def tokens_of(text: str) -> list[Token]:
    if len(text) > LONGEST:
        raise FilterError(f"a filter of {len(text):,} characters is longer than {LONGEST:,}")
    found: list[Token] = []
    at = 0
    while at < len(text):
        space = _SPACE.match(text, at)
        if space is not None:
            at = space.end()
            continue
        token = token_at(text, at)
        found.append(token)
        at += len(token.text)
    # An alias is as long as it is written, but means the other word.
    found = [
        each._replace(kind="sign" if each.text == "=" else "word", text=ALIASES[each.text])
        if each.kind == "sign" and each.text in ALIASES
        else each
        for each in found
    ]
    found.append(Token("end", "", len(text) + 1))
    return found


def token_at(text: str, at: int) -> Token:
    here = text[at]
    if here in "\"'":
        return quoted(text, at)
    number = _NUMBER.match(text, at)
    if number is not None:
        written = number.group()
        is_whole = "." not in written and "e" not in written.lower()
        return Token("number", written, at + 1, int(written) if is_whole else float(written))
    word = _WORD.match(text, at)
    if word is not None:
        return Token("word", word.group(), at + 1)
    for sign in (*_SIGNS, *ALIASES):
        # != before !, and == before =
        if text.startswith(sign, at) and not (sign in ("=", "!") and text.startswith(sign + "=", at)):
            return Token("sign", sign, at + 1)
    raise FilterError(f"{here!r} at character {at + 1} has no meaning in a filter")


def quoted(text: str, at: int) -> Token:
    """Text in double quotes has JSON's escapes; in single quotes it is as it is written, which suits a shell."""
    quote = text[at]
    end = at + 1
    while end < len(text) and text[end] != quote:
        end += 2 if quote == '"' and text[end] == "\\" else 1
    if end >= len(text):
        raise FilterError(f"the text at character {at + 1} has no end: a {quote} is missing")
    written = text[at : end + 1]
    if quote == "'":
        return Token("text", written, at + 1, written[1:-1])
    try:
        value = json.loads(written, strict=False)
    except ValueError:
        raise FilterError(rf"the text at character {at + 1} has an unknown escape: a backslash is \\ there") from None
    return Token("text", written, at + 1, str(value))
