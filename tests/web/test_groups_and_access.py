"""Share groups, the lag of the last hour, moves, rules and users: data and HTML."""

from __future__ import annotations

import json
import urllib.request
from typing import Any, cast

import pytest

from ixion.broker.metadata.image import PartitionImage
from ixion.broker.startup.broker import Broker as RealBroker
from ixion.broker.web.console.api import groups
from ixion.broker.web.console.api.access import Access, access
from ixion.broker.web.console.api.brokers import Brokers, brokers
from ixion.broker.web.console.inside import Inside
from ixion.broker.web.console.lags import KEPT, MOST, Lags
from ixion.broker.web.console.views.access import access as access_view
from ixion.broker.web.console.views.brokers import brokers as brokers_view
from ixion.broker.web.request import HttpRequest
from ixion.clients import Admin, Producer, ShareConsumer
from ixion.clients.admin.configs import Resource
from ixion.language.model.acl_binding import Entry, ResourcePattern
from ixion.language.model.acl_names import Operation, PatternKind, Permission, ResourceKind
from ixion.language.model.resource_type import ResourceType
from ixion.language.protocol.messages.k10_find_coordinator import FindCoordinatorRequest
from ixion.language.protocol.registry import ApiKey
from ixion.language.sasl.scram import ScramCredential
from ixion.testing import Broker
from tests.apis import streams_group_kit
from tests.apis.raw import Raw
from tests.web.hostile import TEXTS
from tests.web.test_due import all_of


def get(broker: Broker, path: str, kind: str = "application/json") -> str:
    address = broker.metrics_url.removesuffix("/metrics") + path
    with urllib.request.urlopen(urllib.request.Request(address, headers={"Accept": kind}), timeout=60) as answer:
        return str(answer.read().decode())


def inside_of(real: RealBroker) -> Inside:
    (action,) = (action for name, action in real.parts.undo if name == "figures of the pages")
    return action.__self__.inside()  # type: ignore[attr-defined, no-any-return]


def test_a_streams_group_shows_its_tasks() -> None:
    with Broker({"group.streams.initial.rebalance.delay.ms": 0}, metrics=True) as broker:
        broker.create_topic("t", 2)
        with Raw(broker.bootstrap) as raw:
            raw.ask(ApiKey.FIND_COORDINATOR, 3, FindCoordinatorRequest(key="app", key_type=0))
            assert streams_group_kit.beat(raw, "app").error_code == 0
        group = json.loads(get(broker, "/api/v1/groups/app"))
        assert (group["protocol"], group["state"]) == ("streams", "Stable")
        (member,) = group["members"]
        assert (member["assigned"], member["assigned_count"]) == (["0_0", "0_1"], 2)
        (row,) = json.loads(get(broker, "/api/v1/groups?q=app"))["groups"]
        assert (row["protocol"], row["members"]) == ("streams", 1)
        assert "0_1" in get(broker, "/groups/app", "text/html")


def test_a_share_group_shows_what_is_in_flight() -> None:
    with Broker(metrics=True) as broker:
        broker.create_topic("jobs", 2)
        with Admin(broker.bootstrap) as admin:
            earliest = {"share.auto.offset.reset": "earliest"}
            admin.alter_configs({Resource(ResourceType.GROUP, "queue"): earliest}).check()
        with Producer(broker.bootstrap) as producer:
            for number in range(5):
                producer.send("jobs", b"%d" % number, partition=0)
        settings: dict[str, Any] = {"share_acknowledgement_mode": "explicit", "client_id": "worker"}
        with ShareConsumer(broker.bootstrap, group="queue", topics=["jobs"], **settings) as one:
            got = 0
            while got < 5:
                got += len(one.poll(1))
            group = json.loads(get(broker, "/api/v1/groups/queue"))
            assert (group["protocol"], group["state"], group["offsets"]) == ("share", "Stable", [])
            (member,) = group["members"]
            assert (member["client_id"], sorted(member["assigned"])) == ("worker", ["jobs-0", "jobs-1"])
            first = next(each for each in group["shares"]["rows"] if each["partition"] == 0)
            assert (first["start"], first["end"], first["lag"]) == (0, 5, 5)
            assert (first["acquired"], first["available"], first["deferred"]) == (5, 0, 0)
            assert group["shares"]["answered"]
            assert group["lag"] == group["lags"][-1] == 5
            (row,) = json.loads(get(broker, "/api/v1/groups?q=queue"))["groups"]
            assert (row["protocol"], row["topics"], row["lag"]) == ("share", 1, 5)
            body = get(broker, "/groups/queue", "text/html")
            assert "held by members" in body
            assert "Committed offsets" not in body
        # The last member has gone, and its leaders with it: the share coordinator knows the start offsets.
        again = json.loads(get(broker, "/api/v1/groups/queue"))
        assert again["state"] == "Empty"
        first = next(each for each in again["shares"]["rows"] if each["partition"] == 0)
        assert (first["start"], first["lag"], again["shares"]["answered"]) == (0, 5, True)
        assert "ixion consume TOPIC --share queue" in get(broker, "/groups/queue", "text/html")


def test_lags_are_bounded_and_begin_with_the_group(monkeypatch: pytest.MonkeyPatch) -> None:
    lags = Lags()
    there: dict[str, tuple[None, int]] = {}

    def found(_: Inside) -> Any:
        yield
        return there

    def lag_of(_: Inside, __: None, lag: int) -> Any:
        yield
        return lag

    monkeypatch.setattr(groups, "all_groups", found)
    monkeypatch.setattr(groups, "lag_of", lag_of)

    def look(**by_name: int) -> None:
        nonlocal there
        there = {name: (None, lag) for name, lag in by_name.items()}
        all_of(lags.look(cast("Inside", None)))

    look(a=5)
    look(a=7, b=1)
    assert lags.of("a", 9) == [5, 7, 9]
    assert lags.of("b", 0) == [1, 0]
    assert lags.of("none", 3) == [3]
    for number in range(KEPT + 5):
        look(a=number)
    assert lags.of("a", 0) == [*range(5, KEPT + 5), 0]
    assert lags.of("b", 0) == [0]
    look(**{str(number): 1 for number in range(MOST + 10)})
    assert sum(len(lags.of(str(number), 0)) > 1 for number in range(MOST + 10)) == MOST


def test_rules_users_tokens_and_moves_without_secrets() -> None:
    settings = {
        "authorizer.class.name": "kafka.security.authorizer.AclAuthorizer",
        "super.users": "User:ANONYMOUS",
        "delegation.token.secret.key": "the-secret-of-the-cluster",
    }
    with Broker(settings, metrics=True) as broker:
        broker.create_topic("orders", 2)

        async def look(real: RealBroker) -> tuple[Access, Access, Brokers]:
            inside = inside_of(real)
            assert inside.authorizer is not None
            for text in TEXTS:
                resource = ResourcePattern(ResourceKind.TOPIC, text, PatternKind.PREFIXED)
                rule = Entry(f"User:{text}", "*", Operation.READ, Permission.DENY)
                inside.authorizer.rules.put(resource, [rule])
            inside.credentials.users["alice <b>"] = {
                "SCRAM-SHA-256": ScramCredential(b"the-salt", b"the-stored-key", b"the-server-key", 4096)
            }
            topic = inside.image.topics["orders"]
            before = topic.partitions
            moving: PartitionImage = before[1]._replace(replicas=(1001, 7), adding=(7,), removing=(1001,))
            topic.partitions = [before[0], moving]
            request = HttpRequest("GET", "/access", {}, {})
            try:
                return (
                    await access(inside, request),
                    await access(inside, request._replace(query={"q": "passwd"})),
                    await brokers(inside, request),
                )
            finally:
                topic.partitions = before

        found, narrowed, cluster = broker.call(look)
        assert found["acls"] == len(found["rules"]) == len(TEXTS)
        assert found["users"] == [{"name": "alice <b>", "mechanisms": ["SCRAM-SHA-256"], "iterations": 4096}]
        assert (found["tokens_enabled"], found["super_users"]) == (True, ["User:ANONYMOUS"])
        assert [each["name"] for each in narrowed["rules"]] == ["../../../../etc/passwd"]
        assert "the-s" not in json.dumps(found)
        body = access_view(found, "")
        assert "<script" not in body
        assert "<img" not in body
        assert "alice &lt;b&gt;" in body
        assert "denies" in body
        assert cluster["moves"] == [
            {
                "topic": "orders",
                "partition": 1,
                "replicas": [1001, 7],
                "adding": [7],
                "removing": [1001],
                "caught_up": [],
            }
        ]
        assert "orders-1" in brokers_view(cluster, "")
