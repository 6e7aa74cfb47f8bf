"""DescribeAcls, CreateAcls and DeleteAcls with an authorizer, in every version, and across a restart."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ixion.language.model.acl_names import Operation, PatternKind, Permission, ResourceKind
from ixion.language.model.errors import ErrorCode
from ixion.language.protocol.messages.k29_describe_acls import DescribeAclsRequest, DescribeAclsResponse
from ixion.language.protocol.messages.k30_create_acls import AclCreation, CreateAclsRequest, CreateAclsResponse
from ixion.language.protocol.messages.k31_delete_acls import DeleteAclsFilter, DeleteAclsRequest, DeleteAclsResponse
from ixion.language.protocol.registry import ApiKey
from ixion.testing.broker import Broker
from tests.apis.asking import versions
from tests.apis.guards.secured import AskingAs, allow, rule, secured

TOPIC, GROUP = ResourceKind.TOPIC, ResourceKind.GROUP
READ, WRITE = Operation.READ, Operation.WRITE


@pytest.fixture
def root() -> Iterator[AskingAs]:
    with secured() as broker, AskingAs(broker.bootstrap, "root") as asking:
        yield asking


def described(root: AskingAs, version: int = 3, **wanted: int | str | None) -> list[tuple[str, str, str, str, str]]:
    request = DescribeAclsRequest(
        resource_type_filter=1,
        resource_name_filter=None,
        pattern_type_filter=1,
        principal_filter=None,
        host_filter=None,
        operation=1,
        permission_type=1,
    ).replace(**wanted)
    answer = root.ask(request, DescribeAclsResponse, version)
    assert answer.error_code == 0, answer
    return [
        (
            ResourceKind(resource.resource_type).name,
            f"{resource.resource_name}{'*' if resource.pattern_type == 4 else ''}",
            entry.principal,
            Operation(entry.operation).name,
            Permission(entry.permission_type).name,
        )
        for resource in answer.resources
        for entry in resource.acls
    ]


def removal(**wanted: int | str | None) -> DeleteAclsFilter:
    return DeleteAclsFilter(
        resource_type_filter=1,
        resource_name_filter=None,
        pattern_type_filter=1,
        principal_filter=None,
        host_filter=None,
        operation=1,
        permission_type=1,
    ).replace(**wanted)


@pytest.mark.parametrize("version", versions(ApiKey.CREATE_ACLS))
def test_rules_are_made_described_and_deleted(root: AskingAs, version: int) -> None:
    made = (
        rule("alice", READ, TOPIC, "orders"),
        rule("alice", WRITE, TOPIC, "pay", PatternKind.PREFIXED, Permission.DENY),
        rule("bob", READ, GROUP, "*"),
        rule("alice", READ, TOPIC, "orders"),  # once more is no error
    )
    answer = root.ask(CreateAclsRequest(creations=made), CreateAclsResponse, version)
    assert [result.error_code for result in answer.results] == [0, 0, 0, 0]
    lines = [
        ("TOPIC", "orders", "User:alice", "READ", "ALLOW"),
        ("TOPIC", "pay*", "User:alice", "WRITE", "DENY"),
        ("GROUP", "*", "User:bob", "READ", "ALLOW"),
    ]
    assert described(root, version) == lines
    assert described(root, version, principal_filter="User:bob") == lines[2:]
    assert described(root, version, resource_type_filter=2, resource_name_filter="payroll", pattern_type_filter=2) == [
        lines[1]
    ]
    filters = (removal(principal_filter="User:alice"), removal(resource_type_filter=2), removal(permission_type=3))
    gone = root.ask(DeleteAclsRequest(filters=filters), DeleteAclsResponse, version).filter_results
    assert [[each.resource_name for each in result.matching_acls] for result in gone] == [["orders", "pay"], [], ["*"]]
    assert {each.error_code for result in gone for each in result.matching_acls} == {0}
    assert described(root, version) == []


WRONG: dict[str, dict[str, object]] = {
    "an unknown kind": {"resource_type": 99},
    "any kind": {"resource_type": 1},
    "any operation": {"operation": 1},
    "any permission": {"permission_type": 1},
    "a pattern of filters": {"resource_pattern_type": 2},
    "no name": {"resource_name": ""},
    "a slash": {"resource_name": "a/b"},
    "a name that no path can have": {"resource_name": ".."},
    "another cluster": {"resource_type": 4, "resource_name": "mine"},
    "no principal": {"principal": "alice"},
}


@pytest.mark.parametrize("what", WRONG)
def test_a_rule_that_makes_no_sense_is_refused_and_the_others_made(root: AskingAs, what: str) -> None:
    wrong = rule("alice", READ, TOPIC, "t").replace(**WRONG[what])
    answer = root.ask(CreateAclsRequest(creations=(wrong, rule("alice", READ, TOPIC, "u"))), CreateAclsResponse)
    assert [result.error_code for result in answer.results] == [ErrorCode.INVALID_REQUEST, 0]
    assert len(described(root)) == 1


def test_filters_with_unknown_numbers_are_refused_one_by_one(root: AskingAs) -> None:
    allow(root, rule("alice", READ, TOPIC, "t"))
    filters = (removal(operation=99), removal(permission_type=0), removal())
    gone = root.ask(DeleteAclsRequest(filters=filters), DeleteAclsResponse).filter_results
    assert [result.error_code for result in gone] == [ErrorCode.INVALID_REQUEST, ErrorCode.INVALID_REQUEST, 0]
    assert len(gone[2].matching_acls) == 1
    request = DescribeAclsRequest(
        resource_type_filter=0,
        resource_name_filter=None,
        principal_filter=None,
        host_filter=None,
        operation=1,
        permission_type=1,
    )
    assert root.ask(request, DescribeAclsResponse).error_code == ErrorCode.INVALID_REQUEST


def test_too_many_at_once_are_refused(root: AskingAs) -> None:
    many = tuple(rule("alice", READ, TOPIC, f"t{number}") for number in range(1_001))
    answer = root.ask(CreateAclsRequest(creations=many), CreateAclsResponse)
    assert {result.error_code for result in answer.results} == {ErrorCode.INVALID_REQUEST}
    on_one = tuple(rule(f"u{number}", READ, TOPIC, "t") for number in range(5_001))
    answer = root.ask(CreateAclsRequest(creations=on_one), CreateAclsResponse)
    assert {result.error_code for result in answer.results} == {ErrorCode.INVALID_REQUEST}
    filters = (removal(),) * 1_001
    gone = root.ask(DeleteAclsRequest(filters=filters), DeleteAclsResponse).filter_results
    assert {result.error_code for result in gone} == {ErrorCode.INVALID_REQUEST}
    assert described(root) == []


def test_rules_survive_a_restart(tmp_path: Path) -> None:
    made: tuple[AclCreation, ...] = (
        rule("alice", READ, TOPIC, "orders"),
        rule("alice", Operation.ALTER_CONFIGS, TOPIC, "pay", PatternKind.PREFIXED, Permission.DENY),
        rule("bob", READ, ResourceKind.TRANSACTIONAL_ID, "*"),
    )
    with secured(data=tmp_path) as broker, AskingAs(broker.bootstrap, "root") as asking:
        allow(asking, *made)
        before = described(asking)
    with secured(data=tmp_path) as broker, AskingAs(broker.bootstrap, "root") as asking:
        assert sorted(described(asking)) == sorted(before)
        assert len(before) == 3


def test_without_an_authorizer_rules_cannot_be_made() -> None:
    with Broker() as broker:
        from tests.apis.asking import Asking

        with Asking(broker.bootstrap) as asking:
            answer = asking.ask(CreateAclsRequest(creations=(rule("a", READ, TOPIC, "t"),)), CreateAclsResponse)
            assert [result.error_code for result in answer.results] == [ErrorCode.SECURITY_DISABLED]
