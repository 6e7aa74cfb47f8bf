"""Quotas of users, client ids and addresses. An entity is a mapping: {"user": "alice", "client-id": None}; None stands
for the default of that kind."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from ixion.clients.admin.plan import ANY, Call, Plan
from ixion.clients.admin.results import Results
from ixion.clients.admin.routes import Spread, fault_of, one, spread, to_controller
from ixion.language.model.errors import KafkaError
from ixion.language.protocol.notation import Struct
from ixion.language.protocol.registry import ApiKey

EXACT: Final = 0
DEFAULT: Final = 1
ANYTHING: Final = 2

Entity = tuple[tuple[str, str | None], ...]  # sorted pairs of kind and name


class QuotaFilter(NamedTuple):
    """Entities with a part of this kind: of this name, the default (None), or `any_name`."""

    kind: str
    name: str | None = None
    any_name: bool = False


def entity(parts: Mapping[str, str | None] | Entity) -> Entity:
    return tuple(sorted(parts.items() if isinstance(parts, Mapping) else parts))


def describe_client_quotas(
    call: Call, filters: Iterable[QuotaFilter] = (), *, strict: bool = False
) -> Plan[dict[Entity, dict[str, float]]]:
    """The quotas of entities that match all filters; with `strict` only of those without other parts."""
    from ixion.language.protocol.messages.k48_describe_client_quotas import (
        ComponentData,
        DescribeClientQuotasRequest,
        DescribeClientQuotasResponse,
    )

    components = tuple(
        ComponentData(
            entity_type=each.kind,
            match_type=ANYTHING if each.any_name else DEFAULT if each.name is None else EXACT,
            match=None if each.any_name else each.name,
        )
        for each in filters
    )
    answer = yield from one(
        call,
        ANY,
        ApiKey.DESCRIBE_CLIENT_QUOTAS,
        lambda _: DescribeClientQuotasRequest(components=components, strict=strict),
        DescribeClientQuotasResponse,
        check=lambda found: fault_of(found.error_code, found.error_message, "the quotas"),
    )
    return {
        entity({part.entity_type: part.entity_name for part in entry.entity}): {
            value.key: value.value for value in entry.values
        }
        for entry in answer.entries or ()
    }


def alter_client_quotas(
    call: Call, changes: Mapping[Entity, Mapping[str, float | None]], *, validate_only: bool = False
) -> Plan[Results[Entity, None]]:
    """Set quotas; None removes one. `entity({...})` makes the keys."""
    from ixion.language.protocol.messages.k49_alter_client_quotas import (
        AlterClientQuotasRequest,
        AlterClientQuotasResponse,
        EntityData,
        EntryData,
        OpData,
    )

    def make(some: list[Entity], _: int) -> Struct:
        entries = tuple(
            EntryData(
                entity=tuple(EntityData(entity_type=kind, entity_name=name) for kind, name in each),
                ops=tuple(
                    OpData(key=key, value=0.0 if value is None else float(value), remove=value is None)
                    for key, value in changes[each].items()
                ),
            )
            for each in some
        )
        return AlterClientQuotasRequest(entries=entries, validate_only=validate_only)

    def read(answer: Struct) -> dict[Entity, KafkaError | None]:
        assert isinstance(answer, AlterClientQuotasResponse)
        found: dict[Entity, KafkaError | None] = {}
        for entry in answer.entries:
            key = entity({part.entity_type: part.entity_name for part in entry.entity})
            found[key] = fault_of(entry.error_code, entry.error_message, "quota of " + str(dict(key)))
        return found

    how = Spread(ApiKey.ALTER_CLIENT_QUOTAS)
    results: Results[Entity, None] = yield from spread(call, how, changes, to_controller, make, read)
    return results
