from __future__ import annotations

import random

from ixion.broker.acl.authorizer import Authorizer
from ixion.broker.acl.rights import MOST_BYTES, Rights
from ixion.language.model.acl_names import Operation, ResourceKind

READ, TOPIC = int(Operation.READ), int(ResourceKind.TOPIC)


def authorizer() -> Authorizer:
    return Authorizer(["User:root"], False, lambda: 0)


def test_rights_to_long_names_are_remembered_within_one_budget() -> None:
    made = authorizer()
    held = [made.rights_of(f"User:{number}", f"10.0.0.{number}") for number in range(20)]
    most = 0
    for number in range(2_000):
        name = f"\N{HATCHING CHICK}{number:0>{random.randrange(1_000, 32_000)}}"
        assert not held[number % 20].sees(READ, TOPIC, name)
        assert made.memory.bytes <= MOST_BYTES
        most = max(most, kept(held))
    assert 0 < most <= MOST_BYTES


def kept(rights: list[Rights]) -> int:
    """The bytes of all names that are remembered."""
    names = [name for each in rights for known in each._known.values() for name in known]
    return sum(4 * len(name) for name in names)


def test_few_principals_are_remembered() -> None:
    made = authorizer()
    for number in range(3_000):
        made.rights_of(f"User:{number}", "10.0.0.1")
    assert len(made._rights) <= 1_000


def test_what_was_forgotten_is_decided_again() -> None:
    made = authorizer()
    root = made.rights_of("User:root", "10.0.0.1")
    alice = made.rights_of("User:alice", "10.0.0.1")
    for number in range(200_000):
        assert root.sees(READ, TOPIC, f"t{number}")
    assert root.sees(READ, TOPIC, "t0")
    assert not alice.sees(READ, TOPIC, "t0")
    assert made.memory.bytes <= MOST_BYTES
