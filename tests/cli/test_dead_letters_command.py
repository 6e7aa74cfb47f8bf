"""`ixion group dead-letters`. Apache Kafka has dead letters of share groups from 4.4 on."""

from __future__ import annotations

from typing import Any

import pytest

from ixion.clients import ShareConsumer
from tests.cli.harness import Ixion
from tests.cli.test_share_commands import queue


@pytest.fixture
def bootstrap(our_own: str) -> str:
    return our_own


def hopeless(ixion: Ixion, *settings: str) -> str:
    """A queue whose first two records were rejected."""
    name = queue(ixion, 3)
    letters = f"errors.deadletterqueue.topic.name=dlq.{name}"
    ixion("config", "set", "group", name, letters, *settings)
    with ShareConsumer(ixion.bootstrap, group=name, topics=[name], max_poll_records=1) as consumer:
        for _ in range(2):
            (record,) = consumer.poll(30.0)
            consumer.reject(record)
            consumer.commit()
    return name


def letters_of(ixion: Ixion, name: str, count: int) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = []
    while len(found) < count:  # they are written a moment after the answer
        found = ixion.jsons("group", "dead-letters", name)
    return found


@pytest.mark.parametrize("copies", [True, False])
def test_dead_letters_are_listed_and_sent_again(ixion: Ixion, copies: bool) -> None:
    settings = ["errors.deadletterqueue.copy.record.enable=true"] if copies else []
    ixion("config", "set", "broker", "default", "errors.deadletterqueue.auto.create.topics.enable=true")
    name = hopeless(ixion, *settings)
    first, second = letters_of(ixion, name, 2)
    assert (first["topic"], first["partition"], first["offset"], second["offset"]) == (name, 0, 0, 1)
    assert (first["deliveries"], first["reason"]) == (1, "rejected by a member")
    assert first["value"] == ("job 0" if copies else None)
    assert "nothing was sent" in ixion.errors
    ixion("group", "dead-letters", name, "--send-again")
    assert "2 sent again" in ixion.errors
    assert ixion.jsons("group", "dead-letters", name) == []
    assert len(ixion.jsons("group", "dead-letters", name, "--all")) == 2
    assert ixion("consume", name, "--share", name, "-n", "3") == "job 2\njob 0\njob 1\n"
    ixion("config", "unset", "broker", "default", "errors.deadletterqueue.auto.create.topics.enable")


def test_dead_letters_wait_for_a_topic_that_takes_them(ixion: Ixion) -> None:
    name = hopeless(ixion)
    ixion("topic", "create", f"dlq.{name}")
    assert ixion.jsons("group", "dead-letters", name) == []
    ixion("config", "set", "topic", f"dlq.{name}", "errors.deadletterqueue.group.enable=true")
    assert len(letters_of(ixion, name, 2)) == 2


def test_a_group_without_dead_letters_says_how_to_get_them(ixion: Ixion) -> None:
    name = queue(ixion, 0)
    said = ixion.refused("group", "dead-letters", name, code=2)
    assert f"ixion config set group {name} errors.deadletterqueue.topic.name=dlq.{name}" in said


@pytest.mark.parametrize(
    ("name", "said"),
    [("__dlq", "that is not internal"), ("a b", "that is not internal"), ("letters", "names that begin with dlq.")],
)
def test_dead_letters_go_to_topics_that_are_meant_for_them(ixion: Ixion, name: str, said: str) -> None:
    assert said in ixion.refused("config", "set", "group", "g", f"errors.deadletterqueue.topic.name={name}")
