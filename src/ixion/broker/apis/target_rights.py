"""The right to name a topic that the broker writes records of others to: `delivery.delay.target` of a topic, and the
topic of the dead letters of a share group.

So a client that sets it needs the right to write to that topic, as every producer of the schedule topic does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ixion.broker.acl.numbers import TOPIC, WRITE
from ixion.broker.acl.rights import Rights
from ixion.config.share_group import DEAD_LETTER_TOPIC
from ixion.config.topic import DELIVERY_DELAY_TARGET
from ixion.language.model.errors import ErrorCode, KafkaError

TARGET: Final = DELIVERY_DELAY_TARGET.name


def check_target(rights: Rights | None, config: Mapping[str, str]) -> None:
    """KafkaError if the client must not deliver records to the target among these settings of a topic."""
    check(rights, config, TARGET)


def check_dead_letters(rights: Rights | None, config: Mapping[str, str]) -> None:
    """KafkaError if the client must not send dead letters to the topic among these settings of a group."""
    check(rights, config, DEAD_LETTER_TOPIC.name)


def check(rights: Rights | None, config: Mapping[str, str], name: str) -> None:
    target = config.get(name, "").strip()
    if target and rights is not None and not rights.may(WRITE, TOPIC, target):
        raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, f"{name} needs the right to write to that topic")
