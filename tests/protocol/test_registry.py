"""The one list of what is spoken, and that nothing of it is loaded before it is used."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import ixion.language.protocol.messages
from ixion.language.protocol.registry import ApiKey, Audience


def test_every_table_is_in_the_list_and_every_key_has_a_table() -> None:
    folder = Path(ixion.language.protocol.messages.__path__[0])
    stems = {path.name.split(".")[0] for path in folder.glob("k*")}
    assert stems == {api.stem for api in ApiKey}


@pytest.mark.parametrize("api", ApiKey, ids=lambda api: api.name)
def test_every_version_resolves_and_carries_its_blank(api: ApiKey) -> None:
    for version in range(api.oldest, api.newest + 1):
        for codec, table in ((api.request(version), api.request_table), (api.response(version), api.response_table)):
            assert codec.decode(codec.encode(table.blank())) == table.blank()


def test_produce_is_advertised_from_zero() -> None:
    assert (ApiKey.PRODUCE.advertised_from, ApiKey.PRODUCE.oldest) == (0, 3)
    assert all(api.advertised_from == api.oldest for api in ApiKey if api is not ApiKey.PRODUCE)


def test_headers_follow_flexibility() -> None:
    assert [ApiKey.FETCH.request_header_version(version) for version in (4, 11, 12, 18)] == [1, 1, 2, 2]
    assert [ApiKey.FETCH.response_header_version(version) for version in (4, 11, 12, 18)] == [0, 0, 1, 1]
    assert {ApiKey.SASL_HANDSHAKE.request_header_version(version) for version in (0, 1)} == {1}
    assert {ApiKey.API_VERSIONS.response_header_version(version) for version in range(6)} == {0}
    assert ApiKey.CONTROLLED_SHUTDOWN.request_header_version(0) == 0


def test_the_controllers_keys_are_not_for_clients() -> None:
    control = {api for api in ApiKey if api.audience is Audience.CONTROLLER}
    assert {int(api) for api in control} == {4, 5, 6, 7, 56, 67}


def test_nothing_is_loaded_before_it_is_used() -> None:
    program = (
        "import sys, ixion.language.protocol.envelope as envelope\n"
        "tables = [name for name in sys.modules if name.startswith('ixion.language.protocol.messages.')]\n"
        "assert tables == [], tables\n"
        "assert envelope._exchanges == {}\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
