"""UpdateFeatures, 0 to 2: change the levels of features, all in the request or none (KIP-584).

The broker must support the level; 0 switches a feature off. To lower a level, the request must be a downgrade: type 2
(safe) or 3 (unsafe); version 0 had a flag for it. Version 1 brought validate_only. Up to version 1 each feature has its
own result, but all fail together, so the error of the whole response is what counts.
"""

from __future__ import annotations

from collections import Counter
from typing import Final, cast

from ixion.broker.acl.numbers import ALTER
from ixion.broker.apis.call import Call, Handle
from ixion.broker.apis.controller_calls import in_time
from ixion.broker.apis.features import SUPPORTED
from ixion.broker.apis.guards.shapes import NO_CLUSTER, refused_with
from ixion.broker.apis.repeats import twice
from ixion.broker.apis.services import Services
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.protocol.messages.k57_update_features import (
    FeatureUpdateKey,
    UpdatableFeatureResult,
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
)

REPEATS: Final = {"feature_updates": twice("feature")}
RIGHTS: Final = refused_with(
    ALTER, UpdateFeaturesResponse(error_code=NO_CLUSTER, error_message=NO_CLUSTER.explanation, results=())
)

UPGRADE: Final = 1
DOWNGRADES: Final = (2, 3)

MOST_UPDATES: Final = 1_000  # per request; they are checked in one turn of the loop


def make(services: Services) -> Handle:
    controller = services.controller
    timer = services.timer

    async def handle(call: Call) -> UpdateFeaturesResponse:
        request = cast(UpdateFeaturesRequest, call.body)

        def change(current: dict[str, int]) -> dict[str, int]:
            wanted = updated(current, request.feature_updates, call.version)
            return current if request.validate_only else wanted

        code, message = ErrorCode.NONE, None
        try:
            await in_time(timer, request.timeout_ms, controller.configs.change_features(change))
        except KafkaError as error:
            code, message = error.code, error.message
        return UpdateFeaturesResponse(
            error_code=code,
            error_message=message,
            results=tuple(
                UpdatableFeatureResult(feature=update.feature, error_code=ErrorCode.NONE, error_message=None)
                for update in request.feature_updates
            )
            if call.version < 2 and code == ErrorCode.NONE
            else (),
        )

    return handle


def updated(current: dict[str, int], updates: tuple[FeatureUpdateKey, ...], version: int) -> dict[str, int]:
    if len(updates) > MOST_UPDATES:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"{len(updates)} features are too many")
    twice = [name for name, count in Counter(each.feature for each in updates).items() if count > 1]
    if twice:
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"features in the request more than once: {', '.join(twice)}")
    wanted = dict(current)
    for update in updates:
        kind = (DOWNGRADES[0] if update.allow_downgrade else UPGRADE) if version == 0 else update.upgrade_type
        name, level, now = update.feature, update.max_version_level, current.get(update.feature, 0)
        if name not in SUPPORTED:
            raise refusal(name, level, f"unknown feature; the features are {', '.join(SUPPORTED)}")
        lowest, highest = SUPPORTED[name]
        if kind not in (UPGRADE, *DOWNGRADES):
            raise refusal(name, level, f"unknown upgrade type {kind}")
        if not lowest <= level <= highest:
            raise refusal(name, level, f"levels {lowest} to {highest} are supported")
        if level < now and kind == UPGRADE:
            raise refusal(name, level, f"it is at {now}, and only a downgrade can lower it")
        if level > now and kind in DOWNGRADES:
            raise refusal(name, level, f"it is at {now}, which a downgrade cannot raise")
        wanted[name] = level
    return wanted


def refusal(name: str, level: int, why: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_UPDATE_VERSION, f"{name} cannot be set to level {level}: {why}")
