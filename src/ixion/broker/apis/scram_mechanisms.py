"""SCRAM mechanisms by their numbers in DescribeUserScramCredentials and AlterUserScramCredentials."""

from __future__ import annotations

from typing import Final

BY_NUMBER: Final = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}
NUMBER_OF: Final = {name: number for number, name in BY_NUMBER.items()}
