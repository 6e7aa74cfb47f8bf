"""Which rule decides: the cases of Kafka's documentation, one by one."""

from __future__ import annotations

import pytest

from ixion.broker.acl.authorizer import Authorizer, parse_super_users
from ixion.broker.acl.rules import Rules
from ixion.language.model.acl_binding import Entry, Filter, ResourcePattern, same_host
from ixion.language.model.acl_names import CLUSTER_NAME, Operation, PatternKind, Permission, ResourceKind

TOPIC, CLUSTER = ResourceKind.TOPIC, ResourceKind.CLUSTER
PREFIXED = PatternKind.PREFIXED
READ, WRITE, DESCRIBE, ALL = Operation.READ, Operation.WRITE, Operation.DESCRIBE, Operation.ALL


def allow(operation: Operation, principal: str = "User:alice", host: str = "*") -> Entry:
    return Entry(principal, host, operation, Permission.ALLOW)


def deny(operation: Operation, principal: str = "User:alice", host: str = "*") -> Entry:
    return Entry(principal, host, operation, Permission.DENY)


def rules(*given: tuple[ResourcePattern, Entry], **options: bool) -> Rules:
    made = Rules(("User:root",), **options)
    for resource, entry in given:
        made.put(resource, (*made.resources.get(resource, ()), entry))
    return made


def may(made: Rules, operation: Operation, name: str, principal: str = "User:alice", host: str = "10.0.0.1") -> bool:
    return made.decide(principal, host, operation, TOPIC, name).allowed


def topic(name: str, pattern: PatternKind = PatternKind.LITERAL) -> ResourcePattern:
    return ResourcePattern(TOPIC, name, pattern)


def test_literal_prefixed_and_wildcard_patterns() -> None:
    made = rules(
        (topic("orders"), allow(READ)), (topic("pay", PREFIXED), allow(WRITE)), (topic("*"), allow(READ, "User:bob"))
    )
    assert may(made, READ, "orders")
    assert not may(made, READ, "orders2")
    assert may(made, WRITE, "payments")
    assert may(made, WRITE, "pay")
    assert not may(made, WRITE, "pa")
    assert may(made, READ, "anything", "User:bob")
    assert not may(made, READ, "anything")


def test_a_prefixed_star_is_only_a_prefix() -> None:
    assert not may(rules((topic("*", PREFIXED), allow(READ))), READ, "orders")


def test_a_denial_beats_every_permission() -> None:
    made = rules((topic("*"), allow(ALL)), (topic("pay", PREFIXED), deny(WRITE)), (topic("payroll"), allow(WRITE)))
    assert may(made, WRITE, "orders")
    assert not may(made, WRITE, "payroll")
    assert may(made, READ, "payroll")


def test_denying_all_denies_describe_but_denying_read_does_not() -> None:
    assert not may(rules((topic("t"), allow(ALL)), (topic("t"), deny(ALL))), DESCRIBE, "t")
    assert may(rules((topic("t"), allow(WRITE)), (topic("t"), deny(READ))), DESCRIBE, "t")


@pytest.mark.parametrize("operation", [READ, WRITE, Operation.DELETE, Operation.ALTER])
def test_permissions_that_imply_describe(operation: Operation) -> None:
    made = rules((topic("t"), allow(operation)))
    assert may(made, DESCRIBE, "t")
    assert not may(made, Operation.DESCRIBE_CONFIGS, "t")


def test_alter_configs_implies_describe_configs_alone() -> None:
    made = rules((topic("t"), allow(Operation.ALTER_CONFIGS)))
    assert may(made, Operation.DESCRIBE_CONFIGS, "t")
    assert not may(made, DESCRIBE, "t")


def test_hosts() -> None:
    made = rules(
        (topic("t"), allow(READ, host="10.0.0.1")), (topic("t"), allow(WRITE)), (topic("t"), deny(WRITE, host="::1"))
    )
    assert may(made, READ, "t", host="10.0.0.1")
    assert not may(made, READ, "t", host="10.0.0.2")
    assert may(made, WRITE, "t", host="10.0.0.2")
    assert not may(made, WRITE, "t", host="::1")


def test_one_host_has_many_spellings() -> None:
    made = rules((topic("t"), allow(READ, host="0:0:0:0:0:0:0:1")), (topic("t"), allow(READ, host="::ffff:10.0.0.1")))
    assert may(made, READ, "t", host=same_host("::1"))
    assert may(made, READ, "t", host=same_host("10.0.0.1"))
    assert same_host("not an address") == "not an address"


def test_super_users_may_everything() -> None:
    made = rules((topic("t"), deny(ALL, "User:root")))
    assert may(made, WRITE, "t", "User:root")


def test_without_a_rule_about_the_resource_the_setting_decides() -> None:
    made = rules((topic("t"), allow(READ, "User:bob")), allow_if_none=True)
    assert may(made, READ, "other")
    assert not may(made, READ, "t")
    assert not may(rules(), READ, "other")


def test_a_rule_that_goes_leaves_the_others_of_the_resource() -> None:
    """CVE-2024-27309: removing one of several rules of a resource lost a denial."""
    made = rules((topic("t"), deny(READ)), (topic("t"), allow(ALL)), (topic("t"), deny(WRITE)))
    made.put(topic("t"), (allow(ALL), deny(READ)))
    assert not may(made, READ, "t")
    assert may(made, WRITE, "t")
    made.put(topic("t"), ())
    assert made.resources == {}
    assert made.count == 0


def test_a_decision_says_which_rule_it_went_by() -> None:
    made = rules((topic("pay", PREFIXED), deny(WRITE)))
    assert made.decide("User:alice", "h", WRITE, TOPIC, "payroll").why == (
        "DENY Write to User:alice from * on Topic:PREFIXED:pay"
    )
    assert made.decide("User:root", "h", WRITE, TOPIC, "payroll").why == "User:root is a super user"
    assert made.decide("User:alice", "h", READ, TOPIC, "payroll").why == "no rule allows it"
    assert made.decide("User:alice", "h", READ, TOPIC, "t").why == "the resource has no rules"


def test_what_any_topic_may_be_written_means() -> None:
    def any_topic(*given: tuple[ResourcePattern, Entry], **options: bool) -> bool:
        return rules(*given, **options).decide_for_any("User:alice", "10.0.0.1", WRITE, TOPIC)

    assert not any_topic()
    assert any_topic(allow_if_none=True)
    assert any_topic((topic("t"), allow(WRITE)))
    assert any_topic((topic("t"), allow(ALL)))
    assert not any_topic((topic("t"), allow(READ)))
    assert not any_topic((topic("t"), allow(WRITE)), (topic("*"), deny(WRITE)))
    assert not any_topic((topic("t"), allow(WRITE)), (topic("t"), deny(WRITE)))
    assert not any_topic((topic("ta", PREFIXED), allow(WRITE)), (topic("t", PREFIXED), deny(WRITE)))
    assert any_topic((topic("t", PREFIXED), allow(WRITE)), (topic("ta", PREFIXED), deny(WRITE)))
    assert any_topic((topic("*"), allow(WRITE)), (topic("t", PREFIXED), deny(WRITE)))
    assert not any_topic((topic("t"), allow(WRITE, "User:bob")))
    assert any_topic((topic("t"), allow(WRITE, "User:*")))
    assert not any_topic((topic("*"), deny(ALL)), allow_if_none=True)


def test_filters() -> None:
    prefixed, literal, wild = topic("pay", PREFIXED), topic("payments"), topic("*")
    match = Filter(TOPIC, "payments", PatternKind.MATCH)
    assert all(match.matches_resource(each) for each in (prefixed, literal, wild))
    assert not match.matches_resource(topic("paymentsx"))
    assert not match.matches_resource(ResourcePattern(ResourceKind.GROUP, "payments"))
    exact = Filter(TOPIC, "pay", PatternKind.ANY)
    assert exact.matches_resource(prefixed)
    assert not exact.matches_resource(literal)
    assert Filter().matches_resource(wild)
    assert Filter(principal="User:alice", operation=READ).matches_entry(allow(READ))
    assert not Filter(principal="User:alice", operation=READ).matches_entry(allow(ALL))
    assert not Filter(permission=Permission.DENY).matches_entry(allow(READ))
    assert Filter(host="*").matches_entry(allow(READ))
    assert Filter(kind=ResourceKind.UNKNOWN).is_unknown


def test_super_users_are_separated_by_semicolons() -> None:
    assert parse_super_users(" User:a ;User:CN=b,O=c;") == ["User:a", "User:CN=b,O=c"]
    assert parse_super_users("") == []
    with pytest.raises(ValueError, match="User:alice"):
        parse_super_users("alice")


def test_what_was_decided_holds_until_a_rule_changes() -> None:
    authorizer = Authorizer((), False, lambda: 0)
    rights = authorizer.rights_of("User:alice", "10.0.0.1")
    assert not rights.may(WRITE, TOPIC, "t")
    authorizer.rules.put(topic("t"), (allow(WRITE),))
    assert rights.may(WRITE, TOPIC, "t")
    assert rights.may_for_any(WRITE, TOPIC)
    authorizer.rules.put(topic("t"), ())
    assert not rights.may(WRITE, TOPIC, "t")
    assert not rights.may_for_any(WRITE, TOPIC)
    assert not rights.may_in_cluster(Operation.ALTER)
    authorizer.rules.put(ResourcePattern(CLUSTER, CLUSTER_NAME), (allow(ALL),))
    assert rights.may_in_cluster(Operation.ALTER)
