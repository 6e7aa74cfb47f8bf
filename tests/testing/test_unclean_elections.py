"""A partition whose last in-sync replica is gone gets a leader when settings allow an unclean election."""

from __future__ import annotations

import pytest

from ixion.language.protocol.messages.k44_incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from ixion.language.protocol.registry import ApiKey
from ixion.testing import Cluster
from tests.apis.raw import Raw

TOPIC, BROKER = 2, 4  # types of resources
NAME = "unclean.leader.election.enable"


def allow(bootstrap: str, kind: int, name: str) -> None:
    config = AlterableConfig(name=NAME, config_operation=0, value="true")
    resource = AlterConfigsResource(resource_type=kind, resource_name=name, configs=(config,))
    with Raw(bootstrap) as raw:
        answer = raw.ask(
            ApiKey.INCREMENTAL_ALTER_CONFIGS,
            1,
            IncrementalAlterConfigsRequest(resources=(resource,), validate_only=False),
        )
    assert answer.responses[0].error_code == 0, answer


def lose(cluster: Cluster, last: int) -> list[int]:
    """Let this replica alone be in sync, and then no broker run. Returns the others."""
    others = [number for number in cluster.brokers if number != last]
    for number in others:
        cluster.kill(number)
    cluster.wait(lambda: cluster.isr("t") == cluster.isr("u") == (last,), "the last replica is alone in sync")
    cluster.kill(last)
    return others


@pytest.mark.parametrize("asked", ["the controller", "another broker"])
@pytest.mark.parametrize(("kind", "name"), [(TOPIC, "t"), (BROKER, "")])
def test_allowing_it_elects(kind: int, name: str, asked: str) -> None:
    with Cluster(3) as cluster:
        cluster.create_topic("t")
        cluster.create_topic("u")
        last = cluster.leader("t")
        others = lose(cluster, last)
        for number in others:
            cluster.restart(number)
        controller = cluster.controller
        broker = controller if asked == "the controller" else next(each for each in others if each != controller)
        assert cluster.isr("t") == (last,)
        allow(cluster.brokers[broker].bootstrap, kind, name)
        assert cluster.leader("t") in others
        if kind == TOPIC:
            assert cluster.isr("u") == (last,), "this topic does not allow it"
        else:
            assert cluster.leader("u") in others


@pytest.mark.parametrize(("kind", "name"), [(TOPIC, "t"), (BROKER, "")])
def test_a_controller_that_starts_later_knows_that_it_is_allowed(kind: int, name: str) -> None:
    with Cluster(3) as cluster:
        cluster.create_topic("t")
        cluster.create_topic("u")
        allow(cluster.brokers[1].bootstrap, kind, name)
        last = cluster.leader("t")
        first, second = lose(cluster, last)
        cluster.restart(first)
        assert cluster.leader("t") == first
        if kind == TOPIC:
            assert cluster.isr("u") == (last,), "this topic does not allow it"
        else:
            assert cluster.leader("u") == first
        cluster.restart(second)
        cluster.kill(first)  # and its successor
        assert cluster.leader("t") == second
