from __future__ import annotations

import random

import pytest

from ixion.config.broker import BrokerConfig, is_secret
from ixion.config.errors import InvalidSettingError
from ixion.config.password_encoder import PasswordEncoder, check_encoder

NAME = "ssl.keystore.password"
JAAS = "listener.name.external.plain.sasl.jaas.config"


def encoder(**given: str) -> PasswordEncoder:
    return PasswordEncoder(BrokerConfig({f"password.encoder.{key.replace('_', '.')}": given[key] for key in given}))


@pytest.mark.parametrize(
    "given",
    [
        {},
        {"key_length": "256", "iterations": "5000"},
        {"keyfactory_algorithm": "PBKDF2WithHmacSHA1"},
    ],
)
def test_passwords_are_stored_encrypted(given: dict[str, str]) -> None:
    made = encoder(secret="s3cret", **given)
    for length in (1, 15, 16, 17, random.randrange(18, 200)):
        password = "p\N{SNOWMAN}" + "x" * length
        stored = made.encode_all({NAME: password, JAAS: password, "num.io.threads": "3"})
        assert stored["num.io.threads"] == "3"
        assert password not in str(stored)
        assert "keyFactoryAlgorithm:PBKDF2WithHmac" in stored[NAME]
        assert f"passwordLength:{len(password.encode())}" in stored[NAME]
        assert stored[NAME] != made.encode_all({NAME: password})[NAME], "salted"
        assert made.decode_all(stored) == ({NAME: password, JAAS: password, "num.io.threads": "3"}, [])


def test_after_a_change_of_the_secret_the_old_one_reads() -> None:
    stored = encoder(secret="old").encode_all({NAME: "password"})
    assert encoder(secret="new", old_secret="old").decode_all(stored) == ({NAME: "password"}, [])
    found, refused = encoder(secret="new").decode_all(stored)
    assert found == {}
    assert [error.name for error in refused] == [NAME]
    assert "encryptedPassword" not in str(refused[0])


@pytest.mark.parametrize(
    "damage", ["encryptedPassword:", "iterations:4096", "keyLength:128", "keyFactoryAlgorithm:PBKDF2WithHmacSHA512"]
)
def test_a_damaged_value_is_refused(damage: str) -> None:
    made = encoder(secret="s")
    stored = made.encode_all({NAME: "password"})[NAME]
    found, refused = made.decode_all({NAME: stored.replace(damage, damage[0] + "salt:!encryptedPassword:")})
    assert (found, len(refused)) == ({}, 1)


def test_without_a_secret_no_password_is_stored_and_plain_text_is_still_read() -> None:
    made = encoder()
    with pytest.raises(InvalidSettingError, match=r"password\.encoder\.secret") as refused:
        made.encode_all({NAME: "pass-word"})
    assert "pass-word" not in str(refused.value)
    assert made.decode_all({NAME: "plain"}) == ({NAME: "plain"}, [])


def test_which_settings_are_secret() -> None:
    for name in (NAME, JAAS, "listener.name.external.ssl.key.password", "delegation.token.secret.key"):
        assert is_secret(name)
    for name in ("num.io.threads", "listener.name.external.ssl.client.auth", "unknown"):
        assert not is_secret(name)


def test_what_we_cannot_encrypt_with_is_refused() -> None:
    check_encoder(BrokerConfig({"password.encoder.key.length": "192"}))
    for name, value in (("key.length", "64"), ("cipher.algorithm", "DES"), ("keyfactory.algorithm", "MD5")):
        with pytest.raises(InvalidSettingError):
            check_encoder(BrokerConfig({f"password.encoder.{name}": value}))
