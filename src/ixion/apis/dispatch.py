"""Brings a request to the handler of its key, with every place in its lists named once (`ixion.apis.distinct`).

A handler is made, and its module imported, when its key is first asked for: a broker that starts imports none of them.
"""

from __future__ import annotations

from collections.abc import Awaitable
from importlib import import_module
from typing import TYPE_CHECKING, Final, cast

from ixion.apis.call import Call, Handle, Outcome
from ixion.apis.distinct import Rule, reduce
from ixion.apis.repeats import rules_of
from ixion.apis.served import SERVED
from ixion.protocol.codec.sink import Part
from ixion.protocol.envelope import frame_response, frame_response_as
from ixion.protocol.flaws import UnsupportedVersionError
from ixion.protocol.headers import RequestHeader
from ixion.protocol.notation import Struct
from ixion.protocol.registry import ApiKey
from ixion.wire.answer import Later

if TYPE_CHECKING:
    from ixion.apis.services import Services
    from ixion.network.request import Request

API_VERSIONS: Final = 18
_SERVED: Final = {int(key): key for key in SERVED}

Answer = list[Part] | Later | None


class Dispatch:
    def __init__(self, services: Services) -> None:
        self._services = services
        self._handles: dict[int, Handle] = {}
        self._rules: dict[int, dict[str, Rule]] = {}

    def handle(self, request: Request) -> Answer | Awaitable[Answer]:
        frame = request.frame
        key = int(frame.api_key)
        handle = self._handles.get(key)
        if handle is None:
            handle = self._make(key, int(frame.api_version))
        if key == API_VERSIONS and frame.api_version > ApiKey.API_VERSIONS.newest:
            return self._step_down(request)
        header, body = frame.decode()
        outcome = handle(Call(request, header, reduce(body, self._rules[key])))
        if outcome is None or isinstance(outcome, Later):
            return outcome
        if isinstance(outcome, Struct):
            return frame_response(header, outcome)
        return finish(header, outcome)

    def _make(self, key: int, version: int) -> Handle:
        api = _SERVED.get(key)
        if api is None:
            raise UnsupportedVersionError(key, version)
        made = cast(Handle, import_module(f"ixion.apis.{api.stem}").make(self._services))
        self._rules[key] = rules_of(api)
        self._handles[key] = made
        return made

    def _step_down(self, request: Request) -> Answer:
        """A client that is newer than we are: it learns in version 0 which versions there are."""
        from ixion.apis.k18_api_versions import too_new

        return frame_response_as(API_VERSIONS, 0, int(request.frame.correlation_id), too_new())


async def finish(header: RequestHeader, pending: Awaitable[Outcome]) -> Answer:
    outcome = await pending
    if outcome is None or isinstance(outcome, Later):
        return outcome
    return frame_response(header, outcome)
