"""`python -m ixion` is `ixion`."""

from ixion.cli.main import run

run()
