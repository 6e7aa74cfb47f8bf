"""The blocking faces are made from those on asyncio (`devtools.blocking`)."""

from __future__ import annotations

import pytest

from devtools.blocking import CLIENTS, FACES, blocking, made

SOURCE = """class Face:
    # The blocking face is made from here on (python -m devtools.blocking) …

    async def poll(self) -> AsyncIterator[int]:
        async with self._lock:
            for each in await self._wait():
                yield each

    # … to here.
"""
TARGET = """class Face:
    # Made from aio/face.py by devtools.blocking, from here on …
    # … to here.

    def own(self) -> int:
        return 1
"""


@pytest.mark.parametrize("target", FACES)
def test_a_blocking_face_is_made_from_the_other(target: str) -> None:
    text = (CLIENTS / target).read_text()
    assert made(text, (CLIENTS / FACES[target]).read_text()) == text, "run python -m devtools.blocking"


def test_what_is_made_and_what_is_left_alone() -> None:
    text = made(TARGET, SOURCE)
    assert (
        "    def poll(self) -> Iterator[int]:\n        with self._lock:\n            yield from self._wait()\n" in text
    )
    assert "    def own(self) -> int:\n        return 1\n" in text
    assert made(text, SOURCE) == text


def test_marks_that_do_not_match_are_an_error() -> None:
    with pytest.raises(ValueError, match="1 parts to be made, and 2 places"):
        made(TARGET + TARGET, SOURCE)


def test_only_whole_words_are_changed() -> None:
    assert blocking("awaited_rows, is_async, awaiting") == "awaited_rows, is_async, awaiting"
