from __future__ import annotations

import logging

import pytest

from ixion.broker.acl.authorizer import Authorizer
from ixion.language.model.acl_binding import Entry, ResourcePattern
from ixion.language.model.acl_names import Operation, Permission, ResourceKind

TOPIC, WRITE = ResourceKind.TOPIC, Operation.WRITE


def test_a_refusal_is_one_line(caplog: pytest.LogCaptureFixture) -> None:
    authorizer = Authorizer((), False, lambda: 0)
    authorizer.rights_of("User:bob", "10.1.2.3").may(WRITE, TOPIC, "payments")
    assert [record.getMessage() for record in caplog.records] == [
        "User:bob from 10.1.2.3 was refused Write on Topic:payments: the resource has no rules"
    ]
    assert authorizer.audit.refused == {(WRITE, TOPIC): 1}


def test_what_a_client_sends_cannot_forge_a_line(caplog: pytest.LogCaptureFixture) -> None:
    authorizer = Authorizer((), False, lambda: 0)
    authorizer.rights_of("User:b\nob", "h").may(WRITE, TOPIC, "x\r\nUser:root was granted all" + "y" * 5_000)
    (record,) = caplog.records
    assert "\n" not in record.getMessage()
    assert "\r" not in record.getMessage()
    assert len(record.getMessage()) < 700


def test_many_refusals_are_few_lines(caplog: pytest.LogCaptureFixture) -> None:
    now = [0]
    authorizer = Authorizer((), False, lambda: now[0])
    rights = authorizer.rights_of("User:bob", "10.1.2.3")
    for _ in range(100_000):
        rights.may(WRITE, TOPIC, "payments")
    assert len(caplog.records) == 100
    now[0] = 1_000
    rights.may(WRITE, TOPIC, "payments")
    assert caplog.records[100].getMessage() == "99900 refusals are not in this log: there were too many"
    assert len(caplog.records) == 102
    assert authorizer.audit.refused == {(WRITE, TOPIC): 100_001}


def test_grants_are_logged_at_debug_when_they_are_decided(caplog: pytest.LogCaptureFixture) -> None:
    authorizer = Authorizer((), False, lambda: 0)
    authorizer.rules.put(ResourcePattern(TOPIC, "t"), [Entry("User:bob", "*", WRITE, Permission.ALLOW)])
    rights = authorizer.rights_of("User:bob", "h")
    rights.may(WRITE, TOPIC, "t")
    assert caplog.records == []
    with caplog.at_level(logging.DEBUG, "ixion.audit"):
        authorizer.rules.put(ResourcePattern(TOPIC, "u"), [Entry("User:bob", "*", WRITE, Permission.ALLOW)])
        for _ in range(3):
            rights.may(WRITE, TOPIC, "t")
    assert [record.getMessage() for record in caplog.records] == [
        "User:bob from h was granted Write on Topic:t: ALLOW Write to User:bob from * on Topic:LITERAL:t"
    ]
