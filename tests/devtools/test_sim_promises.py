"""The judge of the load `shares` says which deliveries break a promise, and which a slow or cut off broker may make."""

from __future__ import annotations

from devtools.sim.promises import Promises

KEY = ("t", 0, 7)


def came(promises: Promises, asked_s: float, now_s: float, epoch: int = 3) -> str:
    return promises.delivered(KEY, "value", 2, asked_s, epoch, now_s)[0]


def test_what_was_accepted_never_comes_again() -> None:
    promises = Promises()
    assert came(promises, 1.0, 1.5) == ""
    promises.answered("p1", KEY, "accept", 3, 2.0)
    assert came(promises, 1.9, 2.5) == "", "it may have been locked before the answer"
    assert came(promises, 2.1, 2.5, epoch=2) == "", "the broker is cut off, and another one leads"
    assert came(promises, 2.1, 2.5) == "NothingTwice"
    assert came(promises, 2.1, 2.5, epoch=4) == "NothingTwice"


def test_what_was_released_with_a_delay_comes_after_it() -> None:
    promises = Promises()
    promises.releasing("p1", KEY, 5.0, 1.0)
    assert came(promises, 1.5, 2.0) == "", "nothing was answered"
    promises.answered("p1", KEY, "release", 3, 2.0)
    assert came(promises, 2.1, 5.9) == "NeverEarly"
    assert came(promises, 2.1, 6.0) == ""
    assert came(promises, 7.0, 7.1) == "", "the promise is kept"


def test_an_answer_that_is_heard_late_does_not_shorten_a_later_promise() -> None:
    promises = Promises()
    promises.releasing("p1", KEY, 1.0, 1.0)
    promises.releasing("p2", KEY, 9.0, 3.0)
    promises.answered("p2", KEY, "release", 3, 3.5)
    promises.answered("p1", KEY, "release", 3, 4.0)
    assert came(promises, 5.0, 6.0) == "NeverEarly"
    promises.answered("p3", KEY, "reject", 3, 5.0)
    promises.answered("p2", KEY, "release", 3, 5.5)
    assert came(promises, 20.0, 20.0) == "NothingTwice"


def test_a_record_that_nobody_has_finished_is_missing() -> None:
    promises = Promises()
    promises.accepted.add("a")
    promises.rejected.add("b")
    assert promises.missing({"a", "b", "c"}, None) == ["c"]


def test_with_dead_letters_a_rejected_record_must_have_one() -> None:
    promises = Promises()
    promises.accepted.add("a")
    promises.rejected.update({"b", "c"})
    assert promises.missing({"a", "b", "c", "d"}, {"b", "d"}) == ["c"]
