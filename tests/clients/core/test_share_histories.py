"""Share consumers in histories from a seed: every record is processed, an acknowledgement that succeeded is stored, and
nobody waits for ever."""

from __future__ import annotations

import pytest

from ixion.clients.core.share.acknowledgement import ACCEPT, REJECT, RELEASE, RENEW, Acknowledgement
from ixion.clients.core.share.machine import ShareMachine
from ixion.clients.core.share.settings import EXPLICIT, RECORD_LIMIT, ShareSettings
from ixion.clients.share.record import ShareRecord
from tests.clients.core.share_sim import ShareSimulation

PLAIN = ShareSettings(request_timeout_ms=5_000, max_poll_interval_ms=60_000)
BY_HAND = PLAIN._replace(share_acknowledgement_mode=EXPLICIT)
SEEDS = pytest.mark.parametrize("seed", [number * 7919 for number in range(8)])


class Worker:
    def __init__(self, sim: ShareSimulation, given_settings: ShareSettings) -> None:
        self.sim = sim
        self.settings = given_settings
        self.machine: ShareMachine = sim.member(given_settings)
        self.held: list[ShareRecord] = []
        self.made: list[tuple[ShareRecord, Acknowledgement]] = []
        self.is_by_hand = given_settings.share_acknowledgement_mode == EXPLICIT

    def work(self, *, calm: bool = False) -> None:
        choose = self.sim.choose
        self.held += self.sim.take(self.machine, choose.choice([0.0, 0.01, 0.3, 2.0]), choose.randrange(1, 12))
        if not self.is_by_hand:
            self.held.clear()
            return
        choose.shuffle(self.held)
        while self.held and (calm or choose.random() < 0.8):
            record = self.held.pop()
            kind = ACCEPT if calm else choose.choice([ACCEPT, ACCEPT, RELEASE, REJECT, RENEW])
            self.made.append((record, self.sim.decide(self.machine, record, kind, choose.choice([0, 0, 500]))))
            if kind == RENEW:
                self.held.insert(0, record)
                break
        if choose.random() < 0.2:
            self.sim.wait(self.machine)

    def check(self) -> None:
        """What was said to be stored is stored."""
        for record, result in self.made:
            if result.is_done and result.error is None and result.kind in (ACCEPT, REJECT):
                assert self.sim.slots[record.partition][record.offset].end == result.kind

    def stop(self) -> None:
        self.sim.close(self.machine)
        self.check()
        assert all(result.is_done for _, result in self.made)


def history(seed: int, given_settings: ShareSettings, workers: int = 2) -> ShareSimulation:
    sim = ShareSimulation(seed)
    everybody = [Worker(sim, given_settings) for _ in range(workers)]
    for _ in range(40):
        for log in sim.logs:
            if sim.choose.random() < 0.5:
                log.append(sim.choose.randrange(1, 9), gap=sim.choose.choice([0, 0, 0, 1, 3]))
        for worker in list(everybody):
            worker.work()
            if sim.choose.random() < 0.05:
                everybody.remove(worker)
                worker.stop()
                everybody.append(Worker(sim, given_settings))
        if sim.choose.random() < 0.1:
            sim.run(sim.choose.choice([1.0, 12.0, 70.0]))  # nobody polls
    sim.trouble = 0.0
    for turn in range(2000):
        if all(len(sim.ends(number)) == len(log.offsets) for number, log in enumerate(sim.logs)):
            break
        for worker in everybody:
            worker.work(calm=True)
        sim.run(1.0)
        assert turn < 1999, "some records never come to an end"
    for worker in everybody:
        worker.stop()
    for stored in sim.stored:
        assert len(stored) == len({each.offset for each in stored})
    assert not sim.sessions, "a closed consumer leaves no session"
    return sim


@SEEDS
def test_every_record_is_accepted_although_everything_happens(seed: int) -> None:
    history(seed, PLAIN)


@SEEDS
def test_every_record_is_acknowledged_by_hand(seed: int) -> None:
    history(seed, BY_HAND)


@SEEDS
def test_also_without_renewals_and_with_a_strict_limit(seed: int) -> None:
    history(seed, BY_HAND._replace(auto_renew=False, share_acquire_mode=RECORD_LIMIT))


@pytest.mark.parametrize("seed", range(2))
def test_the_same_seed_is_the_same_history(seed: int) -> None:
    first, second = history(seed, BY_HAND), history(seed, BY_HAND)
    assert first.now_s == second.now_s
    assert len(first.seen) == len(second.seen)
