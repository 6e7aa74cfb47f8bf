"""Both faces have every plan, under its name and with its parameters."""

from __future__ import annotations

import inspect
from importlib import import_module
from pkgutil import iter_modules

import pytest

import ixion.clients.admin
from ixion.clients import admin as package
from ixion.clients.admin.admin import Calls
from ixion.clients.aio.admin import Calls as AioCalls

PARTS = {"admin", "machine", "plan", "results", "routes", "runner", "settings", "starts"}  # that hold no calls
HELPERS = {"name_unknown", "of_partitions", "partitions_of", "refuse_strangers", "sources_of", "wait_until"}


def plans() -> dict[str, object]:
    found: dict[str, object] = {}
    for module in iter_modules(package.__path__):
        if module.name not in PARTS:
            area = import_module(f"{ixion.clients.admin.__name__}.{module.name}")
            found |= {
                name: value
                for name, value in vars(area).items()
                if inspect.isgeneratorfunction(value) and value.__module__ == area.__name__ and name not in HELPERS
            }
    return found


@pytest.mark.parametrize("face", [Calls, AioCalls])
def test_a_face_has_every_plan(face: type) -> None:
    wanted = plans()
    assert len(wanted) > 40
    methods = {name: value for name, value in vars(face).items() if not name.startswith("_")}
    assert methods.keys() == wanted.keys()
    for name, plan in wanted.items():
        assert inspect.signature(methods[name]) == inspect.signature(plan)  # type: ignore[arg-type]
