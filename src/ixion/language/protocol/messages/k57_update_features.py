"""Change the finalized features of the cluster."""

from ixion.language.protocol.notation import Bool, Int8, Int16, Int32, String, Struct, field


class FeatureUpdateKey(Struct):
    feature: String
    max_version_level: Int16
    allow_downgrade: Bool = field("0")
    upgrade_type: Int8 = field("1+", default=1)


class UpdateFeaturesRequest(Struct):
    timeout_ms: Int32 = 60000
    feature_updates: tuple[FeatureUpdateKey, ...]
    validate_only: Bool = field("1+", default=False)


class UpdatableFeatureResult(Struct):
    feature: String
    error_code: Int16
    error_message: String | None


class UpdateFeaturesResponse(Struct):
    throttle_time_ms: Int32 = 0
    error_code: Int16
    error_message: String | None
    results: tuple[UpdatableFeatureResult, ...] = field("0-1", ignorable=True)
