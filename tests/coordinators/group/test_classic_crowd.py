"""Classic groups of very many members: they are answered in turns of the loop, whatever happens meanwhile."""

from __future__ import annotations

import pytest

from ixion.broker.coordinators.group.classic.rebalance import AT_ONCE
from ixion.language.model.errors import ErrorCode
from tests.coordinators.group.kit import Answer, World
from tests.timer.test_turns import Ticking

MANY = AT_ONCE + 100


def crowd(world: World, count: int = MANY) -> list[Answer]:
    return [world.join(client=f"c{number:04}") for number in range(count)]


def hold(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on the loop is moved a step at a time."""
    monkeypatch.setattr(world, "run", lambda: None)


def let_go(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(world, "run")
    world.run()


def begun(world: World, monkeypatch: pytest.MonkeyPatch) -> list[Answer]:
    """A crowd of whose joins some are answered."""
    answers = crowd(world)
    hold(world, monkeypatch)
    for _ in range(5):  # the initial delay is one millisecond, and another one since members have come
        world.clock.advance(1)
        while world.loop.is_busy and all(answer.waits for answer in answers):
            world.loop.step()
    return answers


def synced(world: World, answers: list[Answer]) -> dict[str, Answer]:
    """All ask for their assignment, the leader last, which brings it."""
    leader = answers[0].join.leader
    ids = [answer.join.member_id for answer in answers]
    syncs = {each: world.sync(each, answers[0].join.generation_id) for each in ids if each != leader}
    syncs[leader] = world.sync(leader, answers[0].join.generation_id, {each: each.encode() for each in ids})
    return syncs


def test_all_members_have_the_same_generation_after_some_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    Ticking(monkeypatch)
    world = World()
    answers = begun(world, monkeypatch)
    assert any(answer.waits for answer in answers)
    before = world.loop.turns
    let_go(world, monkeypatch)
    assert world.loop.turns - before > MANY // 10
    assert {(answer.code, answer.join.generation_id) for answer in answers} == {(ErrorCode.NONE, 1)}
    (leader,) = [answer.join for answer in answers if answer.join.members]
    assert leader.member_id == leader.leader
    assert [member.member_id for member in leader.members] == [answer.join.member_id for answer in answers]
    syncs = synced(world, answers)
    assert {each: answer.sync.assignment for each, answer in syncs.items()} == {each: each.encode() for each in syncs}
    assert world.state == "Stable"
    assert all(world.heartbeat(each, 1) is ErrorCode.NONE for each in syncs)
    world.advance(10_000)
    world.advance(60_000)
    assert not world.group.members, "the sessions of all of them are watched"


def test_a_member_that_another_rebalance_finds_without_an_answer_has_joined_it(monkeypatch: pytest.MonkeyPatch) -> None:
    Ticking(monkeypatch)
    world = World()
    answers = begun(world, monkeypatch)
    late = world.join(client="late")
    let_go(world, monkeypatch)
    told = [answer for answer in answers if not answer.waits]
    assert 0 < len(told) < MANY
    assert {answer.join.generation_id for answer in told} == {1}
    assert late.waits
    for answer in told:
        assert world.heartbeat(answer.join.member_id, 1) is ErrorCode.REBALANCE_IN_PROGRESS
    again = [world.join(answer.join.member_id) for answer in told]
    everybody = [*again, *(answer for answer in answers if answer not in told), late]
    assert {(answer.code, answer.join.generation_id) for answer in everybody} == {(ErrorCode.NONE, 2)}
    assert len(world.group.members) == MANY + 1


def test_assignments_are_handed_out_to_the_end_though_a_rebalance_has_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    Ticking(monkeypatch)
    world = World()
    answers = begun(world, monkeypatch)
    let_go(world, monkeypatch)
    hold(world, monkeypatch)
    syncs = synced(world, answers)
    world.loop.step()
    gone = answers[-1].join.member_id
    world.leave(gone)
    assert world.state == "PreparingRebalance"
    let_go(world, monkeypatch)
    assert syncs.pop(gone).code is ErrorCode.UNKNOWN_MEMBER_ID
    assert {each: answer.sync.assignment for each, answer in syncs.items()} == {each: each.encode() for each in syncs}
    assert all(world.heartbeat(each, 1) is ErrorCode.REBALANCE_IN_PROGRESS for each in syncs)


def test_a_coordinator_that_resigns_answers_the_members_that_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    Ticking(monkeypatch)
    world = World()
    answers = begun(world, monkeypatch)
    world.groups.on_resigned(0)
    let_go(world, monkeypatch)
    codes = [answer.code for answer in answers]
    assert set(codes) == {ErrorCode.NONE, ErrorCode.NOT_COORDINATOR}
    assert codes.count(ErrorCode.NONE) < 20


def test_a_group_has_no_more_members_than_a_record_can_hold() -> None:
    world = World(message_max_bytes=7_000)
    answers = crowd(world, 101)
    assert [answer.code for answer in answers if not answer.waits] == [ErrorCode.GROUP_MAX_SIZE_REACHED]
    world.advance(5)
    assert len(world.group.members) == 100
