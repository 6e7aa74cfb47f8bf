"""What the broker serves: each API whose module is in this package. All about an API is in its module:

| name                   | what it is                                                               |
|------------------------|--------------------------------------------------------------------------|
| `make(services)`       | makes the handler                                                        |
| `RIGHTS`               | the guard that checks the rights of a client, or where they are checked  |
| `make_guard(services)` | in place of `RIGHTS`: makes a guard that needs parts of the broker       |
| `REPEATS`              | if its requests have lists: what becomes of repeated entries (`repeats`) |

Its versions are those of its messages (`protocol.registry`); its docstring opens with them, and a test compares. The
modules are found by their names and imported when the first request of their key comes in: a broker that starts imports
none.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Final, Protocol, cast

from ixion.language.protocol.registry import ApiKey

if TYPE_CHECKING:
    from ixion.broker.apis.call import Handle
    from ixion.broker.apis.distinct import Rule
    from ixion.broker.apis.guards.guard import Guard
    from ixion.broker.apis.services import Services

_FILES: Final = {name.partition(".")[0] for name in os.listdir(os.path.dirname(__file__))}
SERVED: Final = tuple(key for key in ApiKey if key.stem in _FILES)


class Api(Protocol):
    """The module of an API."""

    RIGHTS: Guard | str

    def make(self, services: Services, /) -> Handle: ...

    def make_guard(self, services: Services, /) -> Guard: ...


def api_of(key: ApiKey) -> Api:
    return cast(Api, import_module(f"ixion.broker.apis.{key.stem}"))


def repeats_of(api: Api) -> Mapping[str, Rule]:
    none: Mapping[str, Rule] = {}
    return getattr(api, "REPEATS", none)


def guard_of(api: Api, services: Services) -> Guard | None:
    """None: there is nothing to check before the handler. An API that declares no rights cannot be called at all."""
    if hasattr(api, "make_guard"):
        return api.make_guard(services)
    rights = api.RIGHTS
    return None if isinstance(rights, str) else rights
