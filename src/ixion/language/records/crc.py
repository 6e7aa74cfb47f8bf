"""CRC-32C (Castagnoli), the checksum of a record batch, by the processor's own instruction.

Chosen by measurement (16 kB, from a memoryview): crc32c 0.98 µs, google-crc32c 1.07 µs and a copy, because it takes
`bytes` only; for 1 MB 42 µs against 71 µs. The call itself costs 0.1 µs in both.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.machinery import PathFinder
from importlib.util import module_from_spec
from typing import Any, cast

from ixion.language.records.layout import Buffer


def load() -> Callable[[Buffer, int], int]:
    """The function inside the extension of the package `crc32c`, without the package around it.

    Importing the package takes 20-40 ms, as it loads argparse, ctypes and importlib.metadata on the way; the extension
    alone takes less than one. If a future release moves the extension, we import the package instead.
    """
    package = PathFinder.find_spec("crc32c")
    if package is not None and package.submodule_search_locations is not None:
        spec = PathFinder.find_spec("_crc32c", list(package.submodule_search_locations))
        if spec is not None and spec.loader is not None:
            module: Any = module_from_spec(spec)
            spec.loader.exec_module(module)
            return cast(Callable[[Buffer, int], int], module.crc32c)
    import crc32c

    return crc32c.crc32c


crc32c = load()
"""crc32c(data, crc=0): `crc` is the checksum of the bytes before `data`, which this call continues."""
