"""Iceberg's catalogs, by name: `[catalogs.NAME]`. A sink uses one with `table = "NAME.db.orders"`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from ixion.pipelines.spec.section import Section
from ixion.pipelines.spec.source import expanded

KINDS: Final = ("rest", "jdbc", "hive", "glue", "hadoop")
_NEEDS: Final = {"rest": ("uri",), "jdbc": ("uri", "warehouse"), "hive": ("uri",), "hadoop": ("warehouse",)}
_NAMES: Final = {  # our name -> Iceberg's, by kind; the others are called the same
    "jdbc": {"user": "jdbc.user", "password": "jdbc.password"},
    "rest": {"token": "token", "credential": "credential"},
}
_DEFAULTS: Final = {"jdbc": {"jdbc.schema-version": "V1"}}  # without it, Spark cannot tell whether a table exists
_COMMON: Final = ("uri", "warehouse")


@dataclass(frozen=True, slots=True, kw_only=True)
class CatalogSpec:
    name: str
    kind: str
    settings: Mapping[str, str] = field(default_factory=dict, repr=False)  # by Iceberg's names; may hold passwords

    def conf(self) -> dict[str, str]:
        """The settings of Spark for this catalog."""
        start = f"spark.sql.catalog.{self.name}"
        return {
            start: "org.apache.iceberg.spark.SparkCatalog",
            f"{start}.type": self.kind,
            # Another job may change a table between two batches.
            f"{start}.cache-enabled": "false",
            **{f"{start}.{key}": value for key, value in self.settings.items()},
        }

    @property
    def driver(self) -> str | None:
        """The database driver of a JDBC catalog, by its name in `jars`."""
        found = re.match(r"jdbc:(\w+):", self.settings.get("uri", "")) if self.kind == "jdbc" else None
        return found[1] if found else None


def read_catalogs(section: Section | None) -> tuple[CatalogSpec, ...]:
    return tuple(_read(section, name) for name in section.names()) if section else ()


def _read(section: Section, name: str) -> CatalogSpec:
    catalog = section.section(name)
    assert catalog is not None
    if not re.fullmatch(r"[A-Za-z]\w*", name) or name == "spark_catalog":
        section.fail(f"a catalog cannot be called {name!r}; letters, digits and '_' are allowed", name)
    kind = catalog.choice("type", KINDS)
    own = _NAMES.get(kind, {})
    catalog.only("type", *_COMMON, *own, "options")
    options = expanded(catalog, "options")
    given = expanded(section, name, leave=("options",))
    settings = {own.get(key, key): value for key, value in given.items() if key not in ("type", "options")}
    for needed in _NEEDS.get(kind, ()):
        if needed not in settings:
            catalog.fail(f"a {kind} catalog needs {needed}")
    return CatalogSpec(name=name, kind=kind, settings={**_DEFAULTS.get(kind, {}), **settings, **options})
