"""Patterns of topic names: as Python's own where both can, and never slow."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ixion.coordinators.group.consumer.pattern import Pattern
from ixion.coordinators.group.consumer.pattern_syntax import ALPHABET, PatternError

names = st.text(st.sampled_from("ab1._-"), max_size=8)
atoms = st.sampled_from(["a", "b", "1", r"\.", "-", ".", "[ab]", "[^a]", r"\d", r"\w", "[a-z1]", r"\S", "(?i:A)"])


def grown(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    group = inner.map(lambda text: f"(?:{text})")
    return st.one_of(
        st.tuples(inner, inner).map("".join),
        st.tuples(group, group).map("|".join).map(lambda text: f"({text})"),
        st.tuples(group, st.sampled_from(["*", "+", "?", "{2}", "{1,2}", "{0,}", "*?"])).map("".join),
    )


@given(st.recursive(atoms, grown, max_leaves=6), names)
def test_it_matches_what_python_matches(text: str, name: str) -> None:
    assert Pattern(text).matches(name) == (re.fullmatch(text, name) is not None)


@pytest.mark.parametrize(
    ("text", "matching", "other"),
    [
        (r"orders-(eu|us)\.v\d+", "orders-eu.v2", "orders-eu.v"),
        ("orders", "orders", "orders-eu"),
        ("^orders$", "orders", "xorders"),
        (r"\Aab\z", "ab", "abc"),
        (r"\Qa.b\E", "a.b", "axb"),
        ("(?i)ORDERS", "orders", "order"),
        ("a(?i:B)c", "abc", "abC"),
        ("[[:alpha:]]+", "abc", "a1"),
        ("[]a]", "a", "b"),
        ("[a-]", "-", "b"),
        ("(?P<name>a)(?<other>b)", "ab", "a"),
        ("a|", "", "b"),
    ],
)
def test_the_syntax_of_re2(text: str, matching: str, other: str) -> None:
    pattern = Pattern(text)
    assert pattern.matches(matching)
    assert not pattern.matches(other)


@pytest.mark.parametrize(
    "text",
    ["(", ")", "[", "*a", "a{2,1}", "a{1001}", "a{x}", r"(a)\1", "(?=a)", "(?<!a)", r"\b", r"\p{L}", "a\\", "[b-a]",
     "(" * 101 + ")" * 101, "a" * 1025, "((a{1000}){1000})", "[[:nonsense:]]", "(?x)"],
)  # fmt: skip
def test_what_cannot_be_read_says_so(text: str) -> None:
    with pytest.raises(PatternError):
        Pattern(text)


@pytest.mark.parametrize("text", ["(a+)+b", "(a|a)*b", "(.*)*b", "(a?){50}a{50}", ".*.*.*.*.*.*.*b"])
def test_no_expression_takes_long(text: str) -> None:
    """Python's own would still be at it when the sun goes out."""
    assert not Pattern(text).matches("a" * 249)


def test_all_characters_of_topic_names_are_known() -> None:
    assert all(Pattern("[a-zA-Z0-9._-]").matches(char) for char in ALPHABET)
    assert len(ALPHABET) == 65


@given(st.text(max_size=20))
def test_any_text_is_an_expression_or_an_error(text: str) -> None:
    try:
        Pattern(text).matches("topic")
    except PatternError:
        pass
