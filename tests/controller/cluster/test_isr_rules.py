"""What a leader hears that asks for other in-sync replicas: one test for each rule, and their order."""

from __future__ import annotations

from dataclasses import replace

import pytest

from ixion.broker.controller.cluster.isr_rules import WantedIsr, judge
from ixion.broker.controller.cluster.leadership import Leadership
from ixion.broker.metadata.topic_node import Replicas
from ixion.language.model.errors import ErrorCode

KNOWN = Leadership(leader=1, leader_epoch=5, isr=(1, 2), partition_epoch=9)
REPLICAS = Replicas(all=(1, 2, 3))
LIVE = {1: 100, 2: 200, 3: 300}
WANTED = WantedIsr(sender=1, leader_epoch=5, partition_epoch=9, isr={1: 100, 2: 200, 3: 300}, recovering=False)


def verdict(wanted: WantedIsr, known: Leadership = KNOWN, stopping: tuple[int, ...] = ()) -> Leadership | ErrorCode:
    return judge(known, REPLICAS, wanted, LIVE, stopping)


def test_a_leader_gets_the_isr_it_asks_for_in_the_same_leader_epoch() -> None:
    assert verdict(WANTED) == replace(KNOWN, isr=(1, 2, 3))
    assert verdict(replace(WANTED, isr={1: 100})) == replace(KNOWN, isr=(1,), eligible=(2,))


@pytest.mark.parametrize(
    ("wanted", "code"),
    [
        (replace(WANTED, leader_epoch=6), ErrorCode.NOT_CONTROLLER),
        (replace(WANTED, partition_epoch=10), ErrorCode.NOT_CONTROLLER),
        (replace(WANTED, leader_epoch=4), ErrorCode.FENCED_LEADER_EPOCH),
        (replace(WANTED, leader_epoch=4, partition_epoch=8), ErrorCode.FENCED_LEADER_EPOCH),
        (replace(WANTED, sender=2), ErrorCode.INVALID_REQUEST),
        (replace(WANTED, partition_epoch=8), ErrorCode.INVALID_UPDATE_VERSION),
        (replace(WANTED, isr={}), ErrorCode.INVALID_REQUEST),
        (replace(WANTED, isr={2: 200, 3: 300}), ErrorCode.INVALID_REQUEST),
        (replace(WANTED, isr={1: 100, 4: 400}), ErrorCode.INVALID_REQUEST),
        (replace(WANTED, recovering=True), ErrorCode.INVALID_REQUEST),
        (replace(WANTED, isr={1: 100, 3: 299}), ErrorCode.INELIGIBLE_REPLICA),  # it has restarted since it fetched
        (replace(WANTED, isr={1: 100, 3: 301}), ErrorCode.INELIGIBLE_REPLICA),
    ],
)
def test_refusals(wanted: WantedIsr, code: ErrorCode) -> None:
    assert verdict(wanted) is code


def test_a_member_that_is_dead_or_shuts_down_stays_out() -> None:
    assert judge(KNOWN, REPLICAS, WANTED, {1: 100, 2: 200}, ()) is ErrorCode.INELIGIBLE_REPLICA
    assert verdict(WANTED, stopping=(3,)) is ErrorCode.INELIGIBLE_REPLICA


def test_apache_kafka_does_not_know_the_epochs_of_members() -> None:
    assert verdict(replace(WANTED, isr={1: -1, 2: -1, 3: -1})) == replace(KNOWN, isr=(1, 2, 3))


def test_a_repeated_request_succeeds_although_its_partition_epoch_is_old() -> None:
    assert verdict(replace(WANTED, isr={2: -1, 1: -1}, partition_epoch=8)) is KNOWN


def test_a_recovering_leader_is_alone_until_it_has_recovered() -> None:
    alone = Leadership(leader=1, leader_epoch=5, isr=(1,), partition_epoch=9, recovering=True)
    both = replace(WANTED, isr={1: 100, 2: 200})
    assert verdict(replace(both, recovering=True), alone) is ErrorCode.INVALID_REQUEST
    assert verdict(both, alone) == replace(alone, isr=(1, 2), recovering=False)
    assert verdict(replace(WANTED, isr={1: 100}), alone) == replace(alone, recovering=False)
