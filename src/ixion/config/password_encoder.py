"""Passwords among dynamic settings are stored encrypted, in the form of Apache Kafka 3.9.

    password.encoder.secret=…           # without it, no password can be set while the broker runs
    password.encoder.old.secret=…       # after a change of the secret: read what the old one has encrypted

A stored value lists what is needed to decrypt it: `keyFactoryAlgorithm:PBKDF2WithHmacSHA512,cipherAlgorithm:
AES/CBC/PKCS5Padding,keyLength:128,iterations:4096,salt:…,initializationVector:…,encryptedPassword:…,passwordLength:6`.
A value that does not look so is taken as it is: ixion 0.1 stored plain text. AES needs the extra `ixion[security]`.
"""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Mapping
from typing import Final

from ixion.config import cluster_settings as settings
from ixion.config.broker import BrokerConfig, is_secret
from ixion.config.errors import InvalidSettingError

HASHES: Final = {
    "PBKDF2WithHmacSHA1": "sha1",
    "PBKDF2WithHmacSHA256": "sha256",
    "PBKDF2WithHmacSHA512": "sha512",
}
CIPHER: Final = "AES/CBC/PKCS5Padding"
BLOCK: Final = 16


def check_encoder(config: BrokerConfig) -> None:
    """InvalidSettingError if passwords cannot be encrypted as the settings ask."""
    for setting, allowed in (
        (settings.PASSWORD_ENCODER_KEYFACTORY_ALGORITHM, tuple(HASHES)),
        (settings.PASSWORD_ENCODER_CIPHER_ALGORITHM, (CIPHER,)),
        (settings.PASSWORD_ENCODER_KEY_LENGTH, ("128", "192", "256")),
    ):
        value = config.text(setting)
        if value is not None and value not in allowed:
            raise InvalidSettingError(setting.name, value, f"one of {', '.join(allowed)}")


class PasswordEncoder:
    def __init__(self, config: BrokerConfig) -> None:
        self._secret = config[settings.PASSWORD_ENCODER_SECRET]
        self._old_secret = config[settings.PASSWORD_ENCODER_OLD_SECRET]
        self._hash_name = config[settings.PASSWORD_ENCODER_KEYFACTORY_ALGORITHM] or "PBKDF2WithHmacSHA512"
        self._cipher = config[settings.PASSWORD_ENCODER_CIPHER_ALGORITHM]
        self._key_bits = config[settings.PASSWORD_ENCODER_KEY_LENGTH]
        self._iterations = config[settings.PASSWORD_ENCODER_ITERATIONS]

    def encode_all(self, wanted: Mapping[str, str]) -> dict[str, str]:
        """InvalidSettingError if a password cannot be encrypted."""
        return {name: self._encode(name, value) if is_secret(name) else value for name, value in wanted.items()}

    def decode_all(self, stored: Mapping[str, str]) -> tuple[dict[str, str], list[InvalidSettingError]]:
        """The settings, and the errors of passwords that cannot be decrypted."""
        found: dict[str, str] = {}
        refused: list[InvalidSettingError] = []
        for name, value in stored.items():
            try:
                found[name] = self._decode(name, value) if is_secret(name) and is_encoded(value) else value
            except InvalidSettingError as error:
                refused.append(error)
        return found, refused

    def _encode(self, name: str, password: str) -> str:
        if not self._secret:
            raise InvalidSettingError(name, "[hidden]", "set in the broker's file: password.encoder.secret is not set")
        salt, vector = os.urandom(256), os.urandom(BLOCK)
        key = key_of(self._secret, self._hash_name, salt, self._iterations, self._key_bits)
        data = password.encode()
        left = BLOCK - len(data) % BLOCK
        encrypted = aes(name, key, vector, data + bytes([left]) * left, encrypt=True)
        fields = {
            "keyFactoryAlgorithm": self._hash_name,
            "cipherAlgorithm": self._cipher,
            "keyLength": str(self._key_bits),
            "salt": base64.b64encode(salt).decode(),
            "iterations": str(self._iterations),
            "encryptedPassword": base64.b64encode(encrypted).decode(),
            "passwordLength": str(len(data)),
            "initializationVector": base64.b64encode(vector).decode(),
        }
        return ",".join(f"{key}:{value}" for key, value in fields.items())

    def _decode(self, name: str, value: str) -> str:
        for secret in (self._secret, self._old_secret):
            if secret:
                password = decrypted(name, value, secret)
                if password is not None:
                    return password
        raise InvalidSettingError(name, "[hidden]", "encrypted with password.encoder.secret or the old one")


def is_encoded(value: str) -> bool:
    return "encryptedPassword:" in value and "salt:" in value


def decrypted(name: str, value: str, secret: str) -> str | None:
    """None if it was encrypted with another secret, or cannot be read."""
    try:
        fields = dict(part.split(":", 1) for part in value.split(","))
        if fields["cipherAlgorithm"] != CIPHER:
            return None
        salt = base64.b64decode(fields["salt"])
        iterations, bits = int(fields["iterations"]), int(fields["keyLength"])
        key = key_of(secret, fields["keyFactoryAlgorithm"], salt, iterations, bits)
        vector = base64.b64decode(fields["initializationVector"])
        data = aes(name, key, vector, base64.b64decode(fields["encryptedPassword"]), encrypt=False)
        length = int(fields["passwordLength"])
        if data[length:] != bytes([len(data) - length]) * (len(data) - length):
            return None
        return data[:length].decode()
    except (KeyError, ValueError):
        return None


def key_of(secret: str, hash_name: str, salt: bytes, iterations: int, bits: int) -> bytes:
    return hashlib.pbkdf2_hmac(HASHES[hash_name], secret.encode(), salt, iterations, bits // 8)


def aes(name: str, key: bytes, vector: bytes, data: bytes, *, encrypt: bool) -> bytes:
    try:
        from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
    except ImportError:
        raise InvalidSettingError(
            name, "[hidden]", "set in the broker's file: ixion[security] is not installed"
        ) from None
    cipher = Cipher(algorithms.AES(key), modes.CBC(vector))
    work = cipher.encryptor() if encrypt else cipher.decryptor()
    return bytes(work.update(data) + work.finalize())
