"""Access rules in the tree: Kafka's nodes, changes by other brokers, rules that cannot be read."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from ixion.broker.acl.rules import Rules
from ixion.broker.controller.acls import Acls
from ixion.broker.metadata.content import CorruptNodeError
from ixion.broker.metadata.embedded import IN_MEMORY, EmbeddedStore
from ixion.broker.metadata.on_loop import EmbeddedEngine, LoopSession
from ixion.language.model.acl_binding import Binding, Entry, Filter, ResourcePattern
from ixion.language.model.acl_names import Operation, PatternKind, Permission, ResourceKind

LITERAL = ResourcePattern(ResourceKind.TOPIC, "orders")
PREFIXED = ResourcePattern(ResourceKind.TRANSACTIONAL_ID, "pay", PatternKind.PREFIXED)
READ = Entry("User:alice", "*", Operation.READ, Permission.ALLOW)
DENIED = Entry("User:bob", "10.0.0.1", Operation.ALTER_CONFIGS, Permission.DENY)


def run(work: Callable[[EmbeddedEngine], Coroutine[Any, Any, None]]) -> None:
    async def inside() -> None:
        engine = EmbeddedEngine(EmbeddedStore(IN_MEMORY))
        try:
            await asyncio.wait_for(work(engine), 20)
        finally:
            engine.close()

    asyncio.run(inside())


async def started(session: LoopSession) -> Acls:
    acls = Acls(session, Rules(), lambda: 0)
    await acls.start()
    return acls


async def until(done: Callable[[], bool]) -> None:
    while not done():
        await asyncio.sleep(0)


def test_the_nodes_are_kafkas() -> None:
    async def work(engine: EmbeddedEngine) -> None:
        session = engine.open_session(60_000)
        acls = await started(session)
        assert await acls.create([Binding(LITERAL, READ), Binding(PREFIXED, DENIED)]) == {}
        kinds = ["Cluster", "DelegationToken", "Group", "Topic", "TransactionalId", "User"]
        assert await session.children("/kafka-acl") == kinds
        assert await session.children("/kafka-acl-extended/prefixed") == kinds
        assert (await session.get("/kafka-acl/Topic/orders")).data == (
            b'{"version":1,"acls":[{"principal":"User:alice","permissionType":"Allow","operation":"Read","host":"*"}]}'
        )
        assert (await session.get("/kafka-acl-extended/prefixed/TransactionalId/pay")).data == (
            b'{"version":1,"acls":[{"principal":"User:bob","permissionType":"Deny","operation":"AlterConfigs",'
            b'"host":"10.0.0.1"}]}'
        )
        (name,) = await session.children("/kafka-acl-changes")
        assert name == "acl_changes_0000000000"
        assert (await session.get(f"/kafka-acl-changes/{name}")).data == b"TOPIC:orders"
        (name,) = await session.children("/kafka-acl-extended-changes")
        assert (await session.get(f"/kafka-acl-extended-changes/{name}")).data == (
            b'{"version":1,"resourceType":"TRANSACTIONAL_ID","name":"pay","patternType":"PREFIXED"}'
        )
        await acls.delete([Filter()])
        assert await session.children("/kafka-acl/Topic") == []
        assert acls.rules.count == 0

    run(work)


def test_changes_of_one_broker_are_seen_by_the_others() -> None:
    async def work(engine: EmbeddedEngine) -> None:
        one = await started(engine.open_session(60_000))
        other = await started(engine.open_session(60_000))
        await one.create([Binding(LITERAL, READ)])
        await until(lambda: other.rules.count == 1)
        await other.create([Binding(LITERAL, DENIED), Binding(PREFIXED, READ)])
        await until(lambda: one.rules.count == 3)
        assert set(one.rules.resources[LITERAL]) == {READ, DENIED}
        await one.delete([Filter(permission=Permission.DENY)])
        await until(lambda: other.rules.count == 2)
        assert other.rules.resources == {LITERAL: (READ,), PREFIXED: (READ,)}
        third = await started(engine.open_session(60_000))
        assert third.rules.resources == other.rules.resources

    run(work)


def test_a_broker_that_has_not_seen_a_rule_yet_still_deletes_it_by_name() -> None:
    async def work(engine: EmbeddedEngine) -> None:
        one = await started(engine.open_session(60_000))
        other = await started(engine.open_session(60_000))
        await one.create([Binding(LITERAL, READ)])
        other.rules.put(LITERAL, ())  # as before the notification
        (gone,) = await other.delete([Filter(ResourceKind.TOPIC, "orders", PatternKind.LITERAL)])
        assert gone == {Binding(LITERAL, READ): None}

    run(work)


def test_two_brokers_that_add_rules_to_a_resource_at_once_lose_none() -> None:
    async def work(engine: EmbeddedEngine) -> None:
        brokers = [await started(engine.open_session(60_000)) for _ in range(3)]
        entries = [READ._replace(principal=f"User:{number}") for number in range(12)]
        await asyncio.gather(
            *(brokers[number % 3].create([Binding(LITERAL, entry)]) for number, entry in enumerate(entries))
        )
        await until(lambda: all(broker.rules.count == 12 for broker in brokers))

    run(work)


def test_rules_that_cannot_be_read_keep_a_broker_from_starting() -> None:
    async def work(engine: EmbeddedEngine) -> None:
        session = engine.open_session(60_000)
        acls = await started(session)
        await acls.create([Binding(LITERAL, DENIED)])
        await session.set("/kafka-acl/Topic/orders", b"no json")
        with pytest.raises(CorruptNodeError, match="orders"):
            await started(engine.open_session(60_000))

    run(work)


def test_rules_that_become_unreadable_stay_in_force() -> None:
    async def work(engine: EmbeddedEngine) -> None:
        session = engine.open_session(60_000)
        acls = await started(session)
        await acls.create([Binding(LITERAL, DENIED)])
        await session.set("/kafka-acl/Topic/orders", b"no json")
        await session.create("/kafka-acl-changes/acl_changes_", b"TOPIC:orders", sequential=True)
        await session.create("/kafka-acl-changes/acl_changes_", b"nonsense", sequential=True)
        await session.create("/kafka-acl/Group/g", b'{"version":1,"acls":[]}')
        await acls.create([Binding(PREFIXED, READ)])
        await until(lambda: acls._seen[PatternKind.LITERAL].endswith("2"))
        assert acls.rules.resources[LITERAL] == (DENIED,)

    run(work)


def test_rules_that_cannot_be_read_do_not_keep_a_broker_from_its_next_session() -> None:
    async def work(engine: EmbeddedEngine) -> None:
        session = engine.open_session(60_000)
        acls, other = await started(session), await started(engine.open_session(60_000))
        await acls.create([Binding(LITERAL, READ)])
        acls.stop()
        await session.close()  # as if it had expired
        another = engine.open_session(60_000)
        await another.set("/kafka-acl/Topic/orders", b"garbage")
        await other.create([Binding(PREFIXED, DENIED)])
        await acls.resume(another)
        assert acls.rules.resources == {LITERAL: (READ,), PREFIXED: (DENIED,)}

    run(work)


def test_old_notifications_are_deleted() -> None:
    async def work(engine: EmbeddedEngine) -> None:
        session = engine.open_session(60_000)
        now = [0]
        acls = Acls(session, Rules(), lambda: now[0])
        await acls.start()
        await acls.create([Binding(LITERAL, READ)])
        stat = await session.exists("/kafka-acl-changes/acl_changes_0000000000")
        assert stat is not None
        now[0] = stat.created_ms + 16 * 60 * 1_000
        await acls.create([Binding(LITERAL, DENIED)])
        while "acl_changes_0000000000" in await session.children("/kafka-acl-changes"):
            await asyncio.sleep(0)

    run(work)
