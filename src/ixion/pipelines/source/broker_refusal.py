"""Explains refusals of a broker or its client in the terms of the pipeline file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ixion.pipelines.errors import PipelineError
from ixion.pipelines.source.broker_address import unreachable

# (the client's exception, what it means, what to do)
_REFUSALS: Final = (
    (
        "SaslAuthenticationException",
        "the broker at {} does not accept the name or the password",
        'both are in "kafka.sasl.jaas.config" of [{place}]; a password written as ${{NAME}} is taken from the '
        "environment: is it the right one there?",
    ),
    (
        "UnsupportedSaslMechanismException",
        'the broker at {} does not know this "kafka.sasl.mechanism"',
        "it names those it knows",
    ),
    (
        "IllegalSaslStateException",
        "the broker at {} expects no name and password",
        'its listener has no SASL: "kafka.security.protocol" is PLAINTEXT or SSL there',
    ),
    (
        "SslAuthenticationException",
        "no trusted connection to the broker at {}",
        '"kafka.ssl.truststore.location" of [{place}] says which certificates are trusted; the name in the '
        "broker's certificate must be the one in the address",
    ),
    (
        "AuthorizationException",
        "the broker at {} does not allow this",
        "its administrator grants rights: read and describe for the topics, write for a topic sink",
    ),
)
_WRONG_PROTOCOL: Final = (
    'is "kafka.security.protocol" (PLAINTEXT, SSL, SASL_PLAINTEXT, SASL_SSL) what this listener speaks? A client with '
    "another one gets no answer. Or is the broker just starting?"
)


def refused(bootstrap: str, causes: Sequence[tuple[str, str]], place: str) -> PipelineError:
    """CAUSES are Java's exceptions, the outermost first: class name, message. PLACE is the section of the options."""
    for name, message in causes:
        for exception, words, hint in _REFUSALS:
            if name.endswith(exception):
                said = causes[-1][1] if exception == "SslAuthenticationException" else message
                return PipelineError(f"{words.format(bootstrap)}: {said}", hint=hint.format(place=place))
    if any("Timeout" in name for name, _ in causes):
        return unreachable(bootstrap, "something listens there, but does not reply in time", hint=_WRONG_PROTOCOL)
    name, message = causes[-1]
    return PipelineError(f"the broker at {bootstrap} says {name.removesuffix('Exception')}: {message}")


def refused_settings(causes: Sequence[tuple[str, str]], place: str) -> PipelineError:
    """The client does not start with these settings; the innermost exception says most."""
    name, message = causes[-1]
    if name == "NoSuchFileException":
        message = f"there is no file {message}"
    if "BadPadding" in message or "password was incorrect" in message:
        message = "the password of the key store or the trust store is wrong"
    hint = "their names are those of Kafka's clients, with `kafka.` before them"
    return PipelineError(f"[{place}] cannot be used: {message}", hint=hint)
