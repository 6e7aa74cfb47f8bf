"""Settings of topics, as the controller writes them."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

import pytest

from ixion.broker.controller.planning import NewTopic
from ixion.broker.metadata import paths
from ixion.broker.metadata.config_node import read_config
from ixion.language.model.errors import ErrorCode
from tests.controller.realm import Realm, create
from tests.metadata.awaited import Awaited, run

T = TypeVar("T")


def test_a_topic_setting_without_effect_is_warned_about(realm: Realm, caplog: pytest.LogCaptureFixture) -> None:
    realm.start()
    create(realm, NewTopic(name="t", config={"preallocate": "true"}), NewTopic(name="u"))
    assert "topic t: set, but without effect in ixion: preallocate" in caplog.text
    caplog.clear()

    def change(current: dict[str, str]) -> dict[str, str]:
        return {**current, "preallocate": "true"}

    for validate_only, lines in ((True, 0), (False, 1), (False, 1)):
        realm.run(realm.controller.configs.alter("topics", "u", change, validate_only))
        assert caplog.text.count("without effect") == lines


def test_settings_of_no_topic_give_way_to_those_of_a_new_one(realm: Realm) -> None:
    """Settings can be written to the tree under any name. They must not keep that name from ever being a topic."""
    realm.start()
    realm.run(realm.controller.configs.alter("topics", "t", lambda _: {"retention.ms": "1000"}))
    made = create(realm, NewTopic(name="t", config={"retention.bytes": "7"}), NewTopic(name="u"))
    assert [outcome.code for outcome in made] == [ErrorCode.NONE, ErrorCode.NONE]
    stored = run(read_config(Awaited(realm.session), "topics", "t"))
    assert stored == realm.image.topics["t"].config == {"retention.bytes": "7"}


def test_settings_that_contradict_those_of_the_broker_are_refused_before_anything_is_written(tmp_path: Path) -> None:
    realm = Realm(tmp_path, {"log.cleaner.max.compaction.lag.ms": "50"})
    try:
        realm.start()
        (outcome,) = create(realm, NewTopic(name="t", config={"min.compaction.lag.ms": "100"}))
        assert outcome.code == ErrorCode.INVALID_CONFIG
        assert (realm.image.topics, realm.session.children(paths.TOPICS), realm.folders()) == ({}, [], [])
    finally:
        realm.close()
