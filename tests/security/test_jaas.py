from __future__ import annotations

import pytest

from ixion.broker.security.jaas import client_section, plain_users, zookeeper_login_of

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


FILE = """
// Client { a.DigestLoginModule required username="no" password="no"; };
KafkaServer { /* Client { */
    a.PlainLoginModule required password="Client { }; //";
};
Client {
    org.apache.zookeeper.server.auth.DigestLoginModule required
    username="kafka" password="{/*}\\\"; //"; // the password of kafka
};
"""


def test_the_login_to_zookeeper_in_a_file_with_others() -> None:
    assert zookeeper_login_of(client_section(FILE)) == ("kafka", '{/*}"; //')


@pytest.mark.parametrize("text", ["", "Server { };", "Client {", "NoClient { x; };"])
def test_a_file_without_the_section(text: str) -> None:
    with pytest.raises(ValueError, match="section Client"):
        client_section(text)
