"""Passes a request to the handler of its key, without repeats in its lists (`apis.distinct`).

A request with very many elements is decoded in turns of the loop (`apis.long_request`), and a response with very
many is encoded so too (`Call.encode`).

The first request of a key imports its handler's module and makes the handler: a broker that starts imports none.
"""

# This module is compiled: see setup.py.

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ixion.broker.apis.begin import begun
from ixion.broker.apis.call import Begin, Call
from ixion.broker.apis.distinct import Rule, reduce
from ixion.broker.apis.guards.guard import guarded
from ixion.broker.apis.long_request import LongRequest
from ixion.broker.apis.repeats import changing
from ixion.broker.apis.served import SERVED, api_of, guard_of, repeats_of
from ixion.language.protocol.envelope import frame_response_as
from ixion.language.protocol.flaws import TooLongError, UnsupportedVersionError
from ixion.language.protocol.registry import ApiKey
from ixion.language.wire.answer import LATER, Answer, Later

if TYPE_CHECKING:
    from ixion.broker.apis.services import Services
    from ixion.broker.network.request import Request

API_VERSIONS: Final = 18
_SERVED: Final = {int(key): key for key in SERVED}


class NotAuthenticatedError(UnsupportedVersionError):
    """The client has not authenticated, or its session has expired: the connection is closed."""

    def __init__(self, key: int) -> None:
        super().__init__(key, 0)

    def __str__(self) -> str:
        return f"a request of API key {self.args[0]} without authentication"


class Dispatch:
    def __init__(self, services: Services) -> None:
        self._services = services
        self._handles: dict[int, Begin] = {}
        self._made: dict[int, Begin] = {}  # the handlers without quotas
        self._rules: dict[int, dict[str, Rule]] = {}

    def handle(self, request: Request) -> Answer:
        frame = request.frame
        key = int(frame.api_key)
        gate = request.connection.gate
        if gate is not None and not gate.admits(key):
            raise NotAuthenticatedError(key)
        handle = self._handles.get(key)
        if handle is None:
            handle = self._make(key, int(frame.api_version))
        if key == API_VERSIONS and frame.api_version > ApiKey.API_VERSIONS.newest:
            return self._step_down(request)
        try:
            header, body = frame.decode_at_once()
        except TooLongError:
            LongRequest(request, handle, self._rules[key], self._unanswered).start()
            return LATER
        call = Call(request, header, reduce(body, self._rules[key]))
        outcome = handle(call)
        if outcome is None or isinstance(outcome, Later):
            return outcome
        return call.encode(outcome)

    def _make(self, key: int, version: int) -> Begin:
        served = _SERVED.get(key)
        if served is None:
            raise UnsupportedVersionError(key, version)
        api = api_of(served)
        made = begun(api.make(self._services))
        authorizer = self._services.authorizer
        if authorizer is not None:
            made = guarded(made, guard_of(api, self._services), authorizer)
        self._rules[key] = changing(repeats_of(api))
        self._made[key] = made
        self._handles[key] = handle = self._metered(served, made)
        return handle

    def quotas_changed(self) -> None:
        """Call when the first quota is set or the last is removed: without quotas nothing is measured."""
        for key, made in self._made.items():
            self._handles[key] = self._metered(_SERVED[key], made)

    def _metered(self, api: ApiKey, made: Begin) -> Begin:
        quotas = self._services.quotas
        if not quotas.limits.any:
            return made
        from ixion.broker.apis.metering import brokers_of, metered

        return metered(api, made, quotas, self._services.mutations, brokers_of(self._services))

    def _unanswered(self, request: Request, used_ns: int) -> None:
        """A long request was decoded, for so long, and has no handler."""
        quotas = self._services.quotas
        if quotas.limits.any:
            from ixion.broker.apis.metering import charge_decoding

            charge_decoding(quotas, request, used_ns)

    def _step_down(self, request: Request) -> Answer:
        """Respond to an ApiVersions version that is too new, in version 0, with the versions that we serve."""
        from ixion.broker.apis.k18_api_versions import too_new

        return frame_response_as(API_VERSIONS, 0, int(request.frame.correlation_id), too_new())
