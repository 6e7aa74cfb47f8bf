from __future__ import annotations

import os
import uuid

import pytest

from ixion.language.model.ids import ZERO_ID, id_from_text, id_text, new_id


def test_there_and_back() -> None:
    assert id_text(ZERO_ID) == "AAAAAAAAAAAAAAAAAAAAAA"
    assert id_from_text("MkU3OEVBNTcwNTJENDM2Qg") == b"2E78EA57052D436B"
    assert id_text(b"2E78EA57052D436B") == "MkU3OEVBNTcwNTJENDM2Qg"
    assert id_from_text(id_text(b"\xff" * 16)) == b"\xff" * 16


def test_drawn_ids_can_be_named_on_a_command_line(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = iter([b"\xfb" * 16, b"2E78EA57052D436B"])
    monkeypatch.setattr(os, "urandom", lambda size: next(drawn)[:size])
    assert id_text(new_id()) == "MkU3OEVBRTewNTJENDM2Qg"


def test_drawn_ids_are_random_uuids() -> None:
    drawn = {new_id() for _ in range(100)}
    assert len(drawn) == 100
    assert {uuid.UUID(bytes=value).version for value in drawn} == {4}


@pytest.mark.parametrize("text", ["", "abc", "A" * 21, "A" * 23, "A" * 21 + "+", "A" * 21 + "=", "é" * 22])
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not an id"):
        id_from_text(text)


def test_other_sizes_are_refused() -> None:
    with pytest.raises(ValueError, match="16 bytes, not 3"):
        id_text(b"abc")
