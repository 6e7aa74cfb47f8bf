"""The right to set `delivery.delay.target`: the broker delivers the records of others to that topic.

So a client that sets it needs the right to write to the target, as every producer of the schedule topic does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ixion.broker.acl.numbers import TOPIC, WRITE
from ixion.broker.acl.rights import Rights
from ixion.config.topic import DELIVERY_DELAY_TARGET
from ixion.language.model.errors import ErrorCode, KafkaError

TARGET: Final = DELIVERY_DELAY_TARGET.name


def check_target(rights: Rights | None, config: Mapping[str, str]) -> None:
    """KafkaError if the client must not deliver records to the target among these settings of a topic."""
    target = config.get(TARGET, "").strip()
    if target and rights is not None and not rights.may(WRITE, TOPIC, target):
        raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, f"{TARGET} needs the right to write to that topic")
