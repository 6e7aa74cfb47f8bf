"""The words with which an API declares what becomes of repeated entries in the lists of its requests (`REPEATS`).

`apis.distinct` explains the rules. A test walks the message tables and fails for a list without a rule.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ixion.broker.apis.distinct import AS_SENT, FIRST, ONCE, TWICE, Either, Rule


def once(*key: str, **inner: Rule) -> Rule:
    return Rule(ONCE, key, inner)


def either(*key: str) -> Rule:
    return Either(ONCE, key, {})


def first(*key: str) -> Rule:
    return Rule(FIRST, key, {})


def twice(*key: str, **inner: Rule) -> Rule:
    return Rule(TWICE, key, inner)


def as_sent(**inner: Rule) -> Rule:
    return Rule(AS_SENT, (), inner)


NUMBERS: Final = once()
REPLICAS: Final = {"isr": NUMBERS, "replicas": NUMBERS, "adding_replicas": NUMBERS, "removing_replicas": NUMBERS}
KNOWN_REPLICAS: Final = {"isr": NUMBERS, "replicas": NUMBERS, "offline_replicas": NUMBERS}


def changing(rules: Mapping[str, Rule]) -> dict[str, Rule]:
    """The rules that can change a request. Those of Produce cannot, so its lists are not walked."""
    return {field: rule for field, rule in rules.items() if can_change(rule)}


def can_change(rule: Rule) -> bool:
    return rule.kept != AS_SENT or any(can_change(inner) for inner in rule.inner.values())
