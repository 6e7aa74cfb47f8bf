"""Runs plans: finds a connection for each request, sends it, and resumes the plan when all are answered.

    machine = AdminMachine(bootstrap, settings, random)
    running = machine.start(plan, timeout_s, now_s)
    machine.tick(now_s)                   # then write what the connections have unsent, as for every client
    running.is_done, running.take()       # the result; raises its fault

Outcomes other than answers: the connection broke or the broker could not be reached (the plan asks again), or the
broker does not speak the API (that is final). A refused login ends every call at once. So does a cluster of which no
bootstrap address has ever answered: the address is most likely wrong.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final

from ixion.clients.address import Address
from ixion.clients.admin.plan import ANY, CONTROLLER, Ask, Call, Outcome, Plan, Step, Work
from ixion.clients.core.backoff import Random
from ixion.clients.core.client import Client, ClientSettings
from ixion.clients.core.connection import NEVER, ConnectionMachine, Pending
from ixion.clients.core.connection import Outcome as WireOutcome
from ixion.clients.faults import DisconnectedError, TimedOutError
from ixion.language.model.errors import ErrorCode, KafkaError
from ixion.language.protocol.notation import Struct


class Sending(Pending):
    """One request of a plan."""

    def __init__(self, ask: Ask) -> None:
        self.ask = ask
        self.outcome: Outcome | None = None
        self.is_sent = False
        self.failures: int | None = None  # failed connections of its broker when it was first tried

    def complete(self, outcome: WireOutcome, now_s: float) -> None:  # noqa: ARG002
        assert outcome is not None
        self.outcome = outcome


class Running:
    """A running call."""

    def __init__(self, plan: Plan[Any], call: Call) -> None:
        self.call = call
        self.is_done = False
        self.sendings: list[Sending] = []
        self.resume_s = -NEVER
        self.work: Work | None = None  # to be done before the plan continues
        self._plan = plan
        self._result: Any = None
        self._fault: Exception | None = None
        self._begun = False

    def take(self) -> Any:
        if self._fault is not None:
            raise self._fault
        return self._result

    def fail(self, fault: KafkaError) -> None:
        """Raise the fault where the plan waits; the plan may still return a result."""
        if self.is_done:
            return
        if self._begun:
            self._go_on(lambda: self._plan.throw(fault))
            if not self.is_done:  # the plan handled the fault and continues
                self._plan.close()
                self._end(None, fault)
        else:
            self._plan.close()
            self._end(None, fault)

    def step(self, now_s: float) -> bool:
        """Resume the plan if it waits for nothing. True if it was resumed."""
        if self.is_done or now_s < self.resume_s or self.work is not None:
            return False
        if any(each.outcome is None for each in self.sendings):
            return False
        outcomes = [each.outcome for each in self.sendings if each.outcome is not None]
        if self._begun:
            self._go_on(lambda: self._plan.send(outcomes))
        else:
            self._begun = True
            self._go_on(lambda: next(self._plan))
        return True

    def do_work(self) -> None:
        """Do the work, on any thread. An error is raised again where the plan needs the result."""
        work = self.work
        if work is not None:
            with suppress(Exception):
                work.act()

    def _go_on(self, act: Callable[[], Step]) -> None:
        self.sendings = []
        self.resume_s = -NEVER
        try:
            wanted = act()
        except StopIteration as ended:
            self._end(ended.value, None)
        except Exception as fault:
            self._end(None, fault)  # raised only where the caller waits for the call
        else:
            if isinstance(wanted, list):
                self.sendings = [Sending(ask) for ask in wanted]
            elif isinstance(wanted, Work):
                self.work = wanted
            else:
                self.resume_s = self.call.now_s + wanted

    def _end(self, result: Any, fault: Exception | None) -> None:
        self.is_done = True
        self.sendings = []
        self._result, self._fault = result, fault


class AdminMachine:
    def __init__(
        self,
        bootstrap: Sequence[Address],
        settings: ClientSettings,
        random: Random,
        clock: Callable[[], float] = time.monotonic,
        *,
        defers: bool = False,
    ) -> None:
        """`defers`: the shell does the work of plans on a thread (`Running.do_work`), and clears it afterwards."""
        self.client = Client(bootstrap, settings, random)
        self._clock = clock
        self._defers = defers
        self._running: list[Running] = []

    def start(self, plan: Callable[[Call], Plan[Any]], timeout_s: float, now_s: float) -> Running:
        call = Call(self.client, now_s + timeout_s, timeout_s, self._clock)
        running = Running(plan(call), call)
        self.client.try_again()
        self._running.append(running)
        return running

    def cancel(self, running: Running) -> None:
        """Cancel a call whose caller no longer waits; late answers are dropped."""
        running.fail(KafkaError(ErrorCode.OPERATION_NOT_ATTEMPTED, "the call was cancelled"))
        self._drop_done()

    def tick(self, now_s: float) -> None:
        client = self.client
        client.tick(now_s)
        fault = client.denied or client.nobody_answers
        for running in list(self._running):
            if fault is not None:
                running.fail(fault)
            elif now_s >= running.call.deadline_s:
                running.fail(self._late(running.call))
            while running.step(now_s):
                self._work(running)
            for sending in running.sendings:
                if not sending.is_sent and sending.outcome is None:
                    self._send(sending, now_s)
            while running.step(now_s):
                self._work(running)
                for sending in running.sendings:
                    self._send(sending, now_s)
        self._drop_done()

    def _work(self, running: Running) -> None:
        if not self._defers:
            running.do_work()
            running.work = None

    @property
    def wake_s(self) -> float:
        if not self._running:
            return NEVER  # no request waits for a connection
        wake_s = self.client.wake_s
        for running in self._running:
            wake_s = min(wake_s, running.call.deadline_s)
            if running.resume_s != -NEVER:
                wake_s = min(wake_s, running.resume_s)
            for sending in running.sendings:
                if not sending.is_sent and sending.outcome is None:
                    wake_s = min(wake_s, self._ready_s(sending))
        return wake_s

    unacknowledged: Final = 0  # it sends no records

    def let_go(self) -> bool:
        """Called when the client was garbage-collected: there is nothing to send."""
        return True

    def recover(self, now_s: float) -> None:
        self.client.drop_connections(DisconnectedError("interrupted by an exception"), now_s)

    def close(self, now_s: float) -> None:
        fault = KafkaError(ErrorCode.OPERATION_NOT_ATTEMPTED, "the administrator was closed")
        for running in self._running:
            running.fail(fault)
        self._running.clear()
        self.client.close(fault, now_s)

    def _drop_done(self) -> None:
        self._running = [running for running in self._running if not running.is_done]

    def _late(self, call: Call) -> TimedOutError:
        reason = call.reason or self.client.fault
        because = "" if reason is None else f"; {reason.message}"
        return TimedOutError(f"not done within {call.timeout_s:.3g} s{because}")

    def _node(self, sending: Sending) -> int | None:
        target = sending.ask.target
        if target != CONTROLLER:
            return target
        controller = self.client.cluster.controller
        return controller if controller in self.client.cluster.nodes else None

    def _send(self, sending: Sending, now_s: float) -> None:
        machine = self._connection(sending, now_s)
        if machine is None or now_s < machine.throttled_until_s:
            return
        ask = sending.ask
        try:
            version = machine.version(ask.api, oldest=ask.oldest, newest=ask.newest)
            request: Struct = ask.make(version)
        except KafkaError as fault:
            sending.outcome = fault
            return
        sending.is_sent = True
        machine.send(ask.api, version, request, sending, now_s)

    def _connection(self, sending: Sending, now_s: float) -> ConnectionMachine | None:
        client = self.client
        node_id = self._node(sending)
        if node_id is None:
            sending.outcome = KafkaError(ErrorCode.NOT_CONTROLLER, "the cluster has no controller at the moment")
            return None
        if node_id == ANY:
            return client.least_loaded(now_s)
        if node_id not in client.cluster.nodes:
            sending.outcome = KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, f"broker {node_id} is not up")
            return None
        failures = client.failures(node_id)
        if sending.failures is None:
            sending.failures = failures
        elif failures > sending.failures:
            fault = client.fault
            sending.outcome = DisconnectedError(f"broker {node_id}: {fault.message if fault else 'not reached'}")
            return None
        return client.ready(node_id, now_s)

    def _ready_s(self, sending: Sending) -> float:
        node_id = self._node(sending)
        if node_id is None or node_id == ANY:
            return self.client.some_ready_s
        if self.client.is_connecting(node_id):
            return NEVER
        machine = self.client.connection(node_id)
        return self.client.may_try_s(node_id) if machine is None else machine.throttled_until_s
