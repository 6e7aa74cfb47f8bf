from __future__ import annotations

import pytest

from ixion.security.jaas import plain_users

MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule required"


def test_users_and_their_passwords() -> None:
    text = f"""{MODULE}
        username="admin" password="x"
        user_admin="x" user_alice="a \\"quoted\\" \\\\ secret"   user_b.c-d=bare;"""
    assert plain_users(text) == {"admin": "x", "alice": 'a "quoted" \\ secret', "b.c-d": "bare"}


@pytest.mark.parametrize("text", ["", "user_a=b;", f"{MODULE} user_a=b", f'{MODULE} user_a="b', f"{MODULE} ; more"])
def test_what_is_no_login_module(text: str) -> None:
    with pytest.raises(ValueError, match=r"^it ") as caught:
        plain_users(text)
    assert "b;" not in str(caught.value)
