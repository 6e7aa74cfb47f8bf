"""Patterns of strangers: as Python's own where both can, and never slow or large."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ixion.broker.coordinators.patterns import MAX_MEMORY, MAX_STEPS, Pattern, PatternError

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
    ["(", ")", "[", "*a", "a{2,1}", "a{1001}", r"(a)\1", "(?=a)", "(?<!a)", "a\\", "[b-a]", "\ud800",
     "a" * 10_001, "((a{1000}){1000})", "[[:nonsense:]]", "(?x)", r"\p{Nonsense}"],
)  # fmt: skip
def test_what_cannot_be_read_says_so(text: str) -> None:
    with pytest.raises(PatternError):
        Pattern(text)


LARGEST = ["(.?){900}", "((.?){30}){30}", "(.{0,30}){30}", "(a*b*c*)*" * 800, "(a|b)*a(a|b){900}", "[a-c]?" * 1500]


@pytest.mark.parametrize("text", ["((.?){49}){50}", r"\pL{1000}", r"(?i)[\p{L}]{500}"])
def test_what_would_take_much_memory_is_refused(text: str) -> None:
    """The first of them, in one heartbeat, took 6.6 s and 390 MB."""
    with pytest.raises(PatternError):
        Pattern(text)


@pytest.mark.parametrize("text", LARGEST)
def test_an_expression_takes_a_bounded_number_of_steps(text: str) -> None:
    """An instruction takes 16 bytes; a character takes one step for each instruction at most."""
    pattern = Pattern(text)
    assert pattern.size <= MAX_MEMORY / 16
    longest = "a" * 249
    assert pattern.size * len(longest) <= MAX_STEPS, "every expression may be matched with every topic name"
    pattern.matches(longest)
    too_long = "a" * (MAX_STEPS // pattern.size + 1)
    with pytest.raises(PatternError):
        pattern.matches(too_long)


def test_an_ordinary_expression_matches_the_longest_id_there_is() -> None:
    assert Pattern("a+b?").matches("a" * 32_767)


@pytest.mark.parametrize("text", ["(a+)+b", "(a|a)*b", "(.*)*b", "(a?){50}a{50}b", ".*.*.*.*.*.*.*b"])
def test_no_expression_tries_again_and_again(text: str) -> None:
    """Python's own would still be at it when the sun goes out."""
    assert not Pattern(text).matches("a" * 249)


def test_what_is_remembered_is_bounded() -> None:
    """128 of the largest take 7 MB; here are 500."""

    def resident() -> int:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * 4096

    Pattern("((.?){30}){29}").matches("a" * 249)
    before = resident()
    for number in range(500):
        Pattern(f"((.?){{30}}){{29}}x{number}").matches("a" * 249)
    assert resident() - before < 40 << 20


@given(st.text(max_size=20))
def test_any_text_is_an_expression_or_an_error(text: str) -> None:
    try:
        Pattern(text).matches("topic")
    except PatternError:
        pass
