"""From the text of a filter to something that says whether a record fits.

expression  =  either { "or" either }         either  =  term { "and" term }
term        =  "not" term  |  "(" expression ")"  |  operand [ comparison ]
comparison  =  ("==" | "!=" | "<" | "<=" | ">" | ">=" | "contains" | "startswith" | "endswith") operand
            |  "matches" text  |  "in" "(" literal { "," literal } ")"
operand     =  literal  |  path                literal =  text  |  number  |  true  |  false  |  null
path        =  ("key" | "value" | "headers" | "any" | "partition" | "offset" | "timestamp" | "size") { step }
step        =  "." name  |  "[" text "]"  |  "[" number "]"  |  "[*]"
"""

from __future__ import annotations

from typing import Any, Final

from ixion.clients.filter.terms import (
    COMPARISONS,
    Literal,
    Operand,
    Term,
    both,
    compared,
    either,
    is_there,
    matching,
    negated,
    one_of,
)
from ixion.clients.filter.tokens import FilterError, Token, tokens_of
from ixion.clients.filter.values import Filtered, Limits, Path, Scope, Step

DEEPEST: Final = 20  # parentheses and nots in each other
MOST_STEPS: Final = 10  # of a path
MOST_CHOICES: Final = 100  # behind "in"
UNLIMITED: Final = Limits()
CONSTANTS: Final[dict[str, Any]] = {"true": True, "false": False, "null": None}
PARTS: Final = ("key", "value", "headers", "any", "partition", "offset", "timestamp", "size")


class Filter:
    """Whether records fit. `too_long` counts those of which something was too long for the limits, and did not fit."""

    def __init__(self, text: str, term: Term, limits: Limits) -> None:
        self.text: Final = text
        self.too_long = 0
        self._term: Final = term
        self._limits: Final = limits

    def fits(self, record: Filtered, partition: int) -> bool:
        scope = Scope(record, partition, self._limits)
        found = self._term(scope)
        self.too_long += scope.too_long
        return found


def compiled(text: str, limits: Limits = UNLIMITED) -> Filter:
    """FilterError if the text is no filter."""
    parser = Parser(tokens_of(text))
    term = parser.expression(0)
    if parser.here.kind != "end":
        raise parser.unexpected("'and', 'or' or the end of the filter")
    return Filter(text, term, limits)


class Parser:
    def __init__(self, tokens: list[Token]) -> None:
        self._tokens = tokens
        self._at = 0

    @property
    def here(self) -> Token:
        return self._tokens[self._at]

    def unexpected(self, wanted: str) -> FilterError:
        here = self.here
        if here.kind == "end":
            return FilterError(f"the filter ends too early: {wanted} is missing")
        return FilterError(f"at character {here.at}, {wanted} was expected, not {here.text[:50]!r}")

    def take(self, text: str) -> bool:
        """Whether this word or sign comes next, which is then behind us."""
        if self.here.kind in ("word", "sign") and self.here.text == text:
            self._at += 1
            return True
        return False

    def need(self, text: str) -> None:
        if not self.take(text):
            raise self.unexpected(repr(text))

    def expression(self, depth: int) -> Term:
        terms = [self.all_of(depth)]
        while self.take("or"):
            terms.append(self.all_of(depth))
        return terms[0] if len(terms) == 1 else either(terms)

    def all_of(self, depth: int) -> Term:
        terms = [self.term(depth)]
        while self.take("and"):
            terms.append(self.term(depth))
        return terms[0] if len(terms) == 1 else both(terms)

    def term(self, depth: int) -> Term:
        if depth > DEEPEST:
            raise FilterError(f"the filter is nested more than {DEEPEST} levels deep")
        if self.take("not"):
            return negated(self.term(depth + 1))
        if self.take("("):
            inside = self.expression(depth + 1)
            self.need(")")
            return inside
        left = self.operand()
        for sign in ("!=", *COMPARISONS):
            if self.take(sign):
                return compared(left, sign, self.operand())
        if self.take("matches"):
            return self.pattern(left)
        if self.take("in"):
            return one_of(left, self.choices())
        if isinstance(left, Literal):
            raise self.unexpected("a comparison with this")
        return is_there(left)

    def pattern(self, left: Operand) -> Term:
        token = self.here
        if token.kind != "text":
            raise self.unexpected("a regular expression in quotes")
        self._at += 1
        return matching(left, str(token.value))

    def choices(self) -> list[Any]:
        self.need("(")
        found: list[Any] = []
        while not found or self.take(","):
            choice = self.operand()
            if not isinstance(choice, Literal) or len(found) >= MOST_CHOICES:
                raise FilterError(f"behind 'in' are at most {MOST_CHOICES} texts and numbers")
            found.append(choice.value)
        self.need(")")
        return found

    def operand(self) -> Operand:
        token = self.here
        if token.kind in ("text", "number"):
            self._at += 1
            return Literal(token.value)
        if token.kind == "word" and token.text in CONSTANTS:
            self._at += 1
            return Literal(CONSTANTS[token.text])
        if token.kind == "word" and token.text in ("header", *PARTS):
            self._at += 1
            return self.path("headers" if token.text == "header" else token.text)
        if token.kind == "word":
            raise FilterError(
                f"{token.text[:50]!r} at character {token.at} is none of {', '.join(PARTS)}; a text has quotes"
            )
        raise self.unexpected("a text, a number, or a path such as value.total")

    def path(self, root: str) -> Path:
        steps: list[Step] = []
        while True:
            if self.take("."):
                if self.here.kind != "word":
                    raise self.unexpected("a name")
                steps.append(Step(name=self.here.text))
                self._at += 1
            elif self.take("["):
                steps.append(self.in_brackets())
                self.need("]")
            else:
                break
            if len(steps) > MOST_STEPS:
                raise FilterError(f"a path has at most {MOST_STEPS} steps")
        if root == "headers" and (not steps or steps[0].name is None):
            raise FilterError('headers need a name: headers.trace, or headers["content-type"]')
        if root not in ("key", "value", "headers") and steps:
            raise FilterError(f"{root} has no parts")
        return Path(root, tuple(steps))

    def in_brackets(self) -> Step:
        token = self.here
        if self.take("*"):
            return Step()
        if token.kind == "text":
            self._at += 1
            return Step(name=str(token.value))
        if token.kind == "number" and isinstance(token.value, int) and abs(token.value) < 1 << 31:
            self._at += 1
            return Step(number=token.value)
        raise self.unexpected("a number, a name in quotes, or *")
