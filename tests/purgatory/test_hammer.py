"""Threads watch, check, force and expire the same operations: each completes exactly once, and no wake-up is lost."""

from __future__ import annotations

import random
import threading

from ixion.purgatory import DelayedOperation, DelayedOperationPurgatory

KEYS = ["a", "b", "c", "d"]


class Account:
    """What the operations wait for: a balance per key that only grows."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.balance = dict.fromkeys(KEYS, 0)

    def pay_in(self, key: str) -> None:
        with self.lock:
            self.balance[key] += 1


class Payout(DelayedOperation):
    def __init__(self, delay_ms: int, account: Account, wanted: dict[str, int]) -> None:
        super().__init__(delay_ms)
        self.account = account
        self.wanted = wanted
        self.completions = 0
        self.expirations = 0

    def try_complete(self) -> bool:
        if all(self.account.balance[key] >= amount for key, amount in self.wanted.items()):
            return self.force_complete()
        return False

    def on_complete(self) -> None:
        self.completions += 1

    def on_expiration(self) -> None:
        self.expirations += 1


def run(delay_ms: int, operations_per_thread: int, force: bool) -> list[Payout]:
    purgatory = DelayedOperationPurgatory("hammer", purge_interval=20, shards=2)
    account = Account()
    everyone: list[list[Payout]] = [[] for _ in range(3)]
    paid_in = threading.Event()

    def watch(number: int) -> None:
        rng = random.Random(number)
        for _ in range(operations_per_thread):
            wanted = {key: rng.randrange(1_500) for key in rng.sample(KEYS, rng.randrange(1, 4))}
            payout = Payout(delay_ms, account, wanted)
            everyone[number].append(payout)
            purgatory.try_complete_else_watch(payout, list(wanted))
            if force and rng.random() < 0.2:
                rng.choice(everyone[number]).force_complete()

    def pay() -> None:
        for _ in range(1_500):
            for key in KEYS:
                account.pay_in(key)
                purgatory.check_and_complete(key)
        paid_in.set()

    threads = [threading.Thread(target=watch, args=(number,)) for number in range(3)] + [threading.Thread(target=pay)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert paid_in.is_set()
    if delay_ms < 1_000:
        while purgatory.delayed:
            threading.Event().wait(0.005)
    payouts = [payout for mine in everyone for payout in mine]
    assert purgatory.delayed == sum(not payout.completed for payout in payouts)
    purgatory.shutdown()
    return payouts


def test_no_wake_up_is_lost() -> None:
    """With a timeout far away, the last payment has to wake the last operation: nobody else would."""
    payouts = run(3_600_000, 400, force=False)
    assert [payout.completions for payout in payouts] == [1] * len(payouts)
    assert not any(payout.expirations for payout in payouts)


def test_each_operation_completes_exactly_once() -> None:
    payouts = run(3, 400, force=True)
    assert [payout.completions for payout in payouts] == [1] * len(payouts)
    assert all(payout.expirations <= 1 for payout in payouts)
