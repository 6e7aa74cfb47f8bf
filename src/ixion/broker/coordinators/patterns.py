r"""Regular expressions of clients, matched by RE2, as RE2/J does in Kafka.

RE2 bounds both time and memory: its time grows with the size of the compiled expression times the length of the name,
and it refuses an expression that exceeds its memory limit. (Measured: it refuses `((.?){49}){50}` in 20 µs. The worst
expression that it accepts compiles in 5 ms and matches a topic name in 8 ms; an ordinary one takes 2 µs a name.)

    Pattern(r"orders-(eu|us)\.v\d+").matches("orders-eu.v2")    True
    Pattern(r"orders").matches("orders-eu")                     False: the whole name must match

The library caches the 128 expressions that were used last, which take at most 7 MB. It is imported with the first
expression, which takes 9 ms and 3.5 MB.
"""

from __future__ import annotations

from typing import Final

MAX_LENGTH: Final = 10_000  # characters of an expression
MAX_MEMORY: Final = 256 << 10  # bytes of a compiled expression; some 10,000 instructions
# Instructions times characters of a name, 1.5 to 4.5 ns each. Every expression may be matched with every topic name
# (249 characters); a transactional id may be 32,767 characters long.
MAX_STEPS: Final = 4_000_000


class PatternError(ValueError):
    """The expression is invalid or too large; the message says which."""


class Pattern:
    __slots__ = ("_fullmatch", "size")

    def __init__(self, text: str) -> None:
        """PatternError if the expression is invalid or too large."""
        import re2

        if len(text) > MAX_LENGTH:
            raise PatternError(f"an expression of {len(text)} characters is longer than {MAX_LENGTH}")
        options = re2.Options()
        options.max_mem = MAX_MEMORY
        options.never_capture = True
        options.log_errors = False
        try:
            compiled = re2.compile(text.encode(), options)
        except UnicodeEncodeError as error:
            raise PatternError(f"{error.reason} in {text!r}") from None
        except re2.error as error:
            (reason,) = error.args
            raise PatternError(f"{reason.decode(errors='replace')} in {text[:100]!r}") from None
        self._fullmatch = compiled.fullmatch
        self.size: Final[int] = compiled.programsize  # instructions

    def matches(self, name: str) -> bool:
        """PatternError if the name is too long for so large an expression."""
        data = name.encode()
        if self.size * len(data) > MAX_STEPS:
            raise PatternError(
                f"an expression of {self.size} instructions is too large for a name of {len(data)} bytes"
            )
        return self._fullmatch(data) is not None
