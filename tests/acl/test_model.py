"""The rules against a naive evaluator, after any number of changes."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from ixion.broker.acl.authorizer import Authorizer
from ixion.broker.acl.rights import Rights
from ixion.language.model.acl_binding import Binding, Entry, Filter, ResourcePattern
from ixion.language.model.acl_names import Operation, PatternKind, Permission, ResourceKind

KINDS = (ResourceKind.TOPIC, ResourceKind.GROUP)
NAMES = ("*", "a", "ab", "abc", "b", "ba")
PRINCIPALS = ("User:*", "User:x", "User:y", "User:root")
HOSTS = ("*", "10.0.0.1", "10.0.0.2")
OPERATIONS = tuple(Operation(number) for number in range(2, 13))

resources = st.builds(
    ResourcePattern,
    st.sampled_from(KINDS),
    st.sampled_from(NAMES),
    st.sampled_from((PatternKind.LITERAL, PatternKind.PREFIXED)),
)
entries = st.builds(
    Entry,
    st.sampled_from(PRINCIPALS),
    st.sampled_from(HOSTS),
    st.sampled_from(OPERATIONS),
    st.sampled_from((Permission.ALLOW, Permission.DENY)),
)
bindings = st.builds(Binding, resources, entries)
changes = st.lists(st.tuples(st.booleans(), bindings), max_size=25)
questions = st.tuples(
    st.sampled_from(("User:x", "User:y", "User:root")),
    st.sampled_from(("10.0.0.1", "10.0.0.2", "10.0.0.3")),
    st.sampled_from(OPERATIONS[1:]),
    st.sampled_from(KINDS),
    st.sampled_from(("a", "ab", "abc", "abcd", "b", "z")),
)


def naive(known: set[Binding], allow_if_none: bool, question: tuple[str, str, Operation, ResourceKind, str]) -> bool:
    """Every rule is looked at, as Kafka's documentation has it."""
    principal, host, operation, kind, name = question
    if principal == "User:root":
        return True
    about = [
        rule
        for rule in known
        if rule.resource.kind == kind
        and (
            name.startswith(rule.resource.name)
            if rule.resource.pattern == PatternKind.PREFIXED
            else rule.resource.name in ("*", name)
        )
    ]
    if not about:
        return allow_if_none

    def counts(rule: Binding, operations: set[Operation], permission: Permission) -> bool:
        return (
            rule.entry.permission == permission
            and rule.entry.principal in (principal, "User:*")
            and rule.entry.host in (host, "*")
            and rule.entry.operation in operations
        )

    if any(counts(rule, {operation, Operation.ALL}, Permission.DENY) for rule in about):
        return False
    enough = {operation, Operation.ALL}
    if operation == Operation.DESCRIBE:
        enough |= {Operation.READ, Operation.WRITE, Operation.DELETE, Operation.ALTER}
    if operation == Operation.DESCRIBE_CONFIGS:
        enough.add(Operation.ALTER_CONFIGS)
    return any(counts(rule, enough, Permission.ALLOW) for rule in about)


@settings(max_examples=300, deadline=None)
@given(changes, st.lists(questions, min_size=1, max_size=12), st.booleans())
def test_every_decision_is_that_of_a_naive_evaluator(
    made: list[tuple[bool, Binding]],
    asked: list[tuple[str, str, Operation, ResourceKind, str]],
    allow_if_none: bool,
) -> None:
    authorizer = Authorizer(("User:root",), allow_if_none, lambda: 0)
    rules, known = authorizer.rules, set[Binding]()
    rights: dict[tuple[str, str], Rights] = {}
    for add, binding in made:
        before = rules.resources.get(binding.resource, ())
        if add:
            known.add(binding)
            rules.put(binding.resource, (*before, binding.entry))
        else:
            known.discard(binding)
            rules.put(binding.resource, [entry for entry in before if entry != binding.entry])
        for question in asked:  # also from what is remembered
            principal, host, operation, kind, name = question
            held = rights.setdefault((principal, host), authorizer.rights_of(principal, host))
            assert held.sees(operation, kind, name) == naive(known, allow_if_none, question)
    assert set(rules.matching(Filter())) == known
    assert rules.count == len(known)
    for question in asked:
        assert rules.decide(*question).allowed == naive(known, allow_if_none, question)
