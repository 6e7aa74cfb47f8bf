"""Names that mean something to the compiler and nothing to the interpreter.

mypyc knows `i64` (a machine integer) and `mypyc_attr` (class options) by their home, `mypy_extensions`. The type
checker is shown that home; at run time the stand-ins below serve, so that the hot packages need nothing but
the standard library.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mypy_extensions import i16, i32, i64, mypyc_attr, u8
else:
    i64 = i32 = i16 = u8 = int

    def mypyc_attr(**_options):
        return lambda cls: cls


__all__ = ["i16", "i32", "i64", "mypyc_attr", "u8"]
