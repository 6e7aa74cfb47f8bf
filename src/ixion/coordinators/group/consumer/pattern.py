r"""Matches topic names against a regular expression, in time that grows with the length of the name and nothing else.

A stranger chooses the expression, and a matcher that goes back and tries again (as Python's does) can be made to take
for ever: (a+)+$ on thirty a's. So the expression becomes a set of states of which any number may be on at once, each
character moves all of them one step, and the steps that occurred are remembered, so that a broker with many topics soon
only looks them up.

    Pattern(r"orders-(eu|us)\.v\d+").matches("orders-eu.v2")    True
    Pattern(r"orders").matches("orders-eu")                     False: the whole name must match
"""

from __future__ import annotations

from typing import Final

from ixion.coordinators.group.consumer.pattern_syntax import (
    ALPHABET,
    Begin,
    Chars,
    Choice,
    End,
    Node,
    PatternError,
    Repeat,
    Sequence,
    parse,
)

MAX_STATES: Final = 5_000
MAX_REMEMBERED: Final = 10_000

BEGIN: Final = "begin"
END: Final = "end"

States = frozenset[int]


class Pattern:
    def __init__(self, text: str, alphabet: frozenset[str] = ALPHABET) -> None:
        """`alphabet`: the characters that occur in names. PatternError if it is no expression, or too large a one."""
        # Of each state: what it takes to leave it (characters, a place in the name, or nothing), and where that leads.
        self._needs: list[frozenset[str] | str | None] = []
        self._next: list[list[int]] = []
        self._accept = self._state(None)
        start = self._compile(parse(text, alphabet), self._accept)
        self._start = self._closure({start}, at_begin=True)
        self._steps: dict[tuple[States, str], States] = {}
        self._accepting: dict[States, bool] = {}

    def matches(self, name: str) -> bool:
        states = self._start
        for char in name:
            states = self._step(states, char)
            if not states:
                return False
        accepted = self._accepting.get(states)
        if accepted is None:
            accepted = self._accepting[states] = self._accept in self._closure(states, at_end=True)
        return accepted if name else self._accept in self._closure(states, at_begin=True, at_end=True)

    def _step(self, states: States, char: str) -> States:
        known = self._steps.get((states, char))
        if known is None:
            reached = set()
            for state in states:
                needs = self._needs[state]
                if isinstance(needs, frozenset) and char in needs:
                    reached.update(self._next[state])
            known = self._closure(reached)
            if len(self._steps) >= MAX_REMEMBERED:
                self._steps.clear()
                self._accepting.clear()
            self._steps[states, char] = known
        return known

    def _closure(self, states: set[int] | States, *, at_begin: bool = False, at_end: bool = False) -> States:
        """All that is reached without a character."""
        found = set(states)
        waiting = list(states)
        while waiting:
            state = waiting.pop()
            needs = self._needs[state]
            if needs is None or (needs == BEGIN and at_begin) or (needs == END and at_end):
                for each in self._next[state]:
                    if each not in found:
                        found.add(each)
                        waiting.append(each)
        return frozenset(found)

    def _state(self, needs: frozenset[str] | str | None, *leads_to: int) -> int:
        if len(self._needs) >= MAX_STATES:
            raise PatternError(f"the expression needs more than {MAX_STATES} states")
        self._needs.append(needs)
        self._next.append(list(leads_to))
        return len(self._needs) - 1

    def _compile(self, node: Node, then: int) -> int:
        """The state in which to start on `node`, such that `then` comes after it."""
        if isinstance(node, Chars):
            return self._state(node.allowed, then)
        if isinstance(node, Begin):
            return self._state(BEGIN, then)
        if isinstance(node, End):
            return self._state(END, then)
        if isinstance(node, Sequence):
            for part in reversed(node.parts):
                then = self._compile(part, then)
            return then
        if isinstance(node, Choice):
            return self._state(None, *[self._compile(branch, then) for branch in node.branches])
        return self._repeat(node, then)

    def _repeat(self, node: Repeat, then: int) -> int:
        if node.most is None:
            again = self._state(None, then)
            self._next[again].append(self._compile(node.what, again))
            then = again
        else:
            after = then
            for _ in range(node.most - node.least):
                then = self._state(None, after, self._compile(node.what, then))
        for _ in range(node.least):
            then = self._compile(node.what, then)
        return then
