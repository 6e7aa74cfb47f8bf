from __future__ import annotations

import uuid

import pytest

from ixion.model.ids import ZERO_ID, id_from_text, id_text, new_id


def test_there_and_back() -> None:
    assert id_text(ZERO_ID) == "AAAAAAAAAAAAAAAAAAAAAA"
    assert id_from_text("MkU3OEVBNTcwNTJENDM2Qg") == b"2E78EA57052D436B"
    assert id_text(b"2E78EA57052D436B") == "MkU3OEVBNTcwNTJENDM2Qg"
    assert id_from_text(id_text(b"\xff" * 16)) == b"\xff" * 16


def test_drawn_ids_can_be_named_on_a_command_line(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = iter([ZERO_ID, bytes(15) + b"\x01", b"\xfb" * 16, b"2E78EA57052D436B"])
    monkeypatch.setattr(uuid, "uuid4", lambda: uuid.UUID(bytes=next(drawn)))
    assert new_id() == b"2E78EA57052D436B"


@pytest.mark.parametrize("text", ["", "abc", "A" * 21, "A" * 23, "A" * 21 + "+", "A" * 21 + "=", "é" * 22])
def test_other_texts_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not an id"):
        id_from_text(text)


def test_other_sizes_are_refused() -> None:
    with pytest.raises(ValueError, match="16 bytes, not 3"):
        id_text(b"abc")
