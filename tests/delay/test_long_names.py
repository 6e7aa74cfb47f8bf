"""Topics with the longest names have delayed records, too."""

from __future__ import annotations

import logging
import random
import string
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from ixion.broker.log.log import Log
from ixion.broker.log.names import folder_name, parse_folder_name
from ixion.broker.startup.broker import Broker as RealBroker
from ixion.clients import Consumer, Producer
from ixion.clients.metadata import TopicPartition
from ixion.language.model.complaints import Complaints
from ixion.language.model.delay_names import sibling_of, topic_of
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.model.topic_name import MAX_LENGTH
from ixion.testing import Broker
from tests.delay.world import DelayWorld

LEGAL = string.ascii_letters + string.digits + "._-"


def named(length: int, chance: random.Random) -> str:
    return "".join(chance.choices(LEGAL, k=length))


def test_a_sibling_has_the_name_of_its_topic_if_that_fits() -> None:
    chance = random.Random(1)
    for length in (1, 200, MAX_LENGTH - 8):
        topic = named(length, chance)
        assert sibling_of(topic) == f"__delay.{topic}"
        assert topic_of(sibling_of(topic), []) == topic


@pytest.mark.parametrize("length", range(MAX_LENGTH - 7, MAX_LENGTH + 1))
def test_a_longer_name_is_shortened_and_found_again(length: int) -> None:
    chance = random.Random(length)
    topic = named(length, chance)
    others = [topic[:-1] + "." + letter for letter in "ab" if length < MAX_LENGTH] + [topic[:-1] + "Z", topic[:-1]]
    siblings = {sibling_of(name) for name in {topic, *others}}
    assert len(siblings) == len({topic, *others})
    folder = folder_name(sibling_of(topic), 99_999)
    assert len(folder) <= 255
    parsed = parse_folder_name(folder)
    assert parsed is not None
    assert topic_of(parsed.topic, [*others, topic]) == topic


def test_no_topic_can_have_the_name_of_a_shortened_sibling() -> None:
    topic = "t" * MAX_LENGTH
    alike = sibling_of(topic).removeprefix("__delay.")
    with pytest.raises(KafkaError) as caught:
        folder_name(alike, 0)
    assert caught.value.code == ErrorCode.INVALID_TOPIC_EXCEPTION


def test_records_of_a_topic_with_a_long_name_wait_and_survive(tmp_path: Path) -> None:
    topics = [named(length, random.Random(length)) for length in (MAX_LENGTH - 8, MAX_LENGTH - 7, MAX_LENGTH)]
    with Broker(data=tmp_path) as broker:
        for topic in topics:
            broker.create_topic(topic, 2, delivery_delay_mode="record", file_delete_delay_ms=0)
        with Producer(broker.bootstrap) as producer:
            for topic in topics:
                far = [("x-deliver-after-ms", b"3600000")]
                producer.send(topic, b"later", partition=1, headers=far)
                producer.send(topic, b"now", partition=1, headers=[("x-deliver-after-ms", b"1")])
            producer.flush()
    with Broker(data=tmp_path) as broker:
        for topic in topics:
            with Consumer(broker.bootstrap, auto_offset_reset="earliest") as consumer:
                consumer.assign([TopicPartition(topic, 1)])
                assert consumer.poll(30)[0].value == b"now"
            assert broker.call(partial(count_waiting, topic)) == 1


async def count_waiting(topic: str, broker: RealBroker) -> int:
    schedule = broker.parts.schedules.get((topic, 1))
    assert schedule is not None
    assert schedule.state is not None
    return schedule.state.count


def test_a_sibling_that_cannot_be_opened_is_logged_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = DelayWorld(tmp_path)
    caplog.set_level(logging.WARNING)
    real = world.logs.create

    def create(topic: str, *more: Any) -> Log:
        if topic.startswith("__delay."):
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, "no room")
        return real(topic, *more)

    monkeypatch.setattr(world.logs, "create", create)
    world.lead()
    for _ in range(30):
        world.advance(1_000)
    assert len([each for each in caplog.records if "cannot be accepted" in each.getMessage()]) == 1
    monkeypatch.undo()
    world.advance(1_000)
    while world.flush():
        pass
    assert world.waiting == 0
    world.close()


def test_complaints_are_logged_when_they_are_new(caplog: pytest.LogCaptureFixture) -> None:
    complaints = Complaints(logging.getLogger("test"))
    caplog.set_level(logging.WARNING)
    for fault in ("a", "a", "b", "b", "a"):
        complaints.add("one", logging.ERROR, "one: %s", fault)
        complaints.add("two", logging.WARNING, "two: %s", "same")
    complaints.end("two")
    complaints.add("two", logging.WARNING, "two: %s", "same")
    assert caplog.messages == ["one: a", "two: same", "one: b", "one: a", "two: same"]
