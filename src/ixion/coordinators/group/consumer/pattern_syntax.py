"""Reads a regular expression for topic names: the syntax of RE2, as far as it can matter for them.

Topic names are made of 65 characters, so every character, class and dot comes down to a set of those. Whoever matches
other names says which characters occur in them. What RE2 does not
have either (back references, looking ahead and behind) is refused, as are word boundaries and Unicode classes.
"""

from __future__ import annotations

import string
from dataclasses import dataclass
from typing import Final

ALPHABET: Final = frozenset(string.ascii_letters + string.digits + "._-")
MAX_LENGTH: Final = 1024  # characters of an expression
MAX_REPEAT: Final = 1000  # as RE2
MAX_DEPTH: Final = 100  # parentheses

DIGITS: Final = frozenset(string.digits)
WORD: Final = frozenset(string.ascii_letters + string.digits + "_")
SPACE: Final = frozenset("\t\n\f\r ")
ESCAPED_SETS: Final = {"d": DIGITS, "w": WORD, "s": SPACE}  # in capitals: all but these
POSIX: Final = {
    "alnum": DIGITS | frozenset(string.ascii_letters),
    "alpha": frozenset(string.ascii_letters),
    "digit": DIGITS,
    "lower": frozenset(string.ascii_lowercase),
    "upper": frozenset(string.ascii_uppercase),
    "punct": frozenset(string.punctuation),
    "word": WORD,
    "space": SPACE,
}


class PatternError(ValueError):
    """Not an expression that can be matched; says what is wrong with it."""


@dataclass(frozen=True, slots=True)
class Chars:
    allowed: frozenset[str]


@dataclass(frozen=True, slots=True)
class Begin:
    """The beginning of the name."""


@dataclass(frozen=True, slots=True)
class End:
    """The end of the name."""


@dataclass(frozen=True, slots=True)
class Sequence:
    parts: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    branches: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    what: Node
    least: int
    most: int | None  # None: any number


Node = Chars | Begin | End | Sequence | Choice | Repeat


def parse(text: str, alphabet: frozenset[str] = ALPHABET) -> Node:
    if len(text) > MAX_LENGTH:
        raise PatternError(f"an expression of {len(text)} characters is longer than {MAX_LENGTH}")
    parser = _Parser(text, alphabet)
    node = parser.choice(0)
    if parser.position < len(text):
        raise parser.error("a ) without its (")
    return node


class _Parser:
    def __init__(self, text: str, alphabet: frozenset[str]) -> None:
        self.text = text
        self.alphabet = alphabet
        self.position = 0
        self.any_case = False

    def error(self, what: str) -> PatternError:
        return PatternError(f"{what} at character {self.position} of {self.text!r}")

    def peek(self) -> str:
        return self.text[self.position : self.position + 1]

    def take(self) -> str:
        char = self.peek()
        if not char:
            raise self.error("the expression ends too early")
        self.position += 1
        return char

    def skip(self, literal: str) -> bool:
        if self.text.startswith(literal, self.position):
            self.position += len(literal)
            return True
        return False

    def choice(self, depth: int) -> Node:
        if depth > MAX_DEPTH:
            raise self.error(f"more than {MAX_DEPTH} parentheses in each other")
        any_case = self.any_case
        branches = [self.sequence(depth)]
        while self.skip("|"):
            branches.append(self.sequence(depth))
        self.any_case = any_case
        return branches[0] if len(branches) == 1 else Choice(tuple(branches))

    def sequence(self, depth: int) -> Node:
        parts: list[Node] = []
        while self.peek() not in ("", "|", ")"):
            atom = self.atom(depth)
            if atom is not None:
                parts.append(self.repeats(atom))
        return Sequence(tuple(parts))

    def atom(self, depth: int) -> Node | None:
        """None for what only sets a flag."""
        char = self.take()
        if char == "(":
            return self.parenthesis(depth)
        if char == "[":
            return self.char_class()
        if char == ".":
            return Chars(self.alphabet)
        if char == "^":
            return Begin()
        if char == "$":
            return End()
        if char == "\\":
            return self.escape()
        if char in "*+?":
            raise self.error(f"{char} without anything to repeat")
        return self.literal(char)

    def literal(self, char: str) -> Chars:
        both = {char.lower(), char.upper()} if self.any_case else {char}
        return Chars(frozenset(both) & self.alphabet)

    def parenthesis(self, depth: int) -> Node | None:
        before = self.any_case
        if self.skip("?"):
            if self.skip("P<") or (self.skip("<") and self.peek() not in ("=", "!")):
                while self.take() != ">":
                    pass
            elif self.peek() in ("=", "!", "<"):
                raise self.error("looking ahead or behind is not supported,")
            else:
                self.flags()
                if self.skip(")"):
                    return None
                if not self.skip(":"):
                    raise self.error("an unknown form of parentheses")
        node = self.choice(depth + 1)
        if not self.skip(")"):
            raise self.error("a ( without its )")
        self.any_case = before
        return node

    def flags(self) -> None:
        on = True
        while (char := self.peek()) in ("i", "m", "s", "U", "-") and char:
            self.position += 1
            if char == "-":
                on = False
            elif char == "i":
                self.any_case = on

    def escape(self) -> Node:
        char = self.take()
        if char == "Q":
            end = self.text.find("\\E", self.position)
            quoted = self.text[self.position : end if end >= 0 else len(self.text)]
            self.position += len(quoted) + (2 if end >= 0 else 0)
            return Sequence(tuple(self.literal(each) for each in quoted))
        if char == "A":
            return Begin()
        if char == "z":
            return End()
        return Chars(self.escaped_set(char))

    def escaped_set(self, char: str) -> frozenset[str]:
        known = ESCAPED_SETS.get(char.lower())
        if known is not None:
            return known & self.alphabet if char.islower() else self.alphabet - known
        if char.isalnum():
            raise self.error(f"\\{char} is not supported,")
        return frozenset(char) & self.alphabet

    def char_class(self) -> Chars:
        negated = self.skip("^")
        found: set[str] = set()
        first = True
        while first or self.peek() != "]":
            first = False
            if self.skip("[:"):
                found |= self.posix()
                continue
            low = self.take()
            if low == "\\":
                found |= self.escaped_set(self.take())
                continue
            high = low
            if self.peek() == "-" and self.text[self.position + 1 : self.position + 2] not in ("]", ""):
                self.position += 1
                high = self.take()
                if high == "\\":
                    high = self.take()
                if high < low:
                    raise self.error(f"the range {low}-{high} is empty")
            found |= {each for each in self.alphabet if low <= each <= high}
        self.position += 1
        if self.any_case:
            found |= {each.lower() for each in found} | {each.upper() for each in found}
        return Chars(self.alphabet - found if negated else frozenset(found) & self.alphabet)

    def posix(self) -> frozenset[str]:
        end = self.text.find(":]", self.position)
        name = self.text[self.position : end] if end >= 0 else ""
        negated = name.startswith("^")
        known = POSIX.get(name.removeprefix("^"))
        if known is None:
            raise self.error(f"an unknown class [:{name}:]")
        self.position = end + 2
        return self.alphabet - known if negated else known & self.alphabet

    def repeats(self, atom: Node) -> Node:
        while True:
            bounds = self.bounds()
            if bounds is None:
                return atom
            self.skip("?")  # whether few or many are tried first makes no difference to a whole match
            atom = Repeat(atom, *bounds)

    def bounds(self) -> tuple[int, int | None] | None:
        simple: dict[str, tuple[int, int | None]] = {"*": (0, None), "+": (1, None), "?": (0, 1)}
        char = self.peek()
        if char in simple:
            self.position += 1
            return simple[char]
        if char != "{":
            return None
        end = self.text.find("}", self.position)
        least, comma, most = self.text[self.position + 1 : max(end, 0)].partition(",")
        if end < 0 or not least.isdecimal() or (most and not most.isdecimal()):
            raise self.error("{ begins a number of repeats; write \\{ for the character, which no topic has,")
        self.position = end + 1
        low = int(least)
        high = (int(most) if most else None) if comma else low
        if max(low, high or 0) > MAX_REPEAT or (high is not None and high < low):
            raise self.error(f"a repeat of {low} to {high} times")
        return low, high
