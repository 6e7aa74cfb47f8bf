"""Gives a compiled class its docstring, for `help()`: the compiler leaves docstrings out.

A method of a compiled class cannot be given one, so the text of the class also has those of its methods.
"""

from __future__ import annotations

import os
import re
import sys

METHOD = re.compile(r'([a-z]\w*)\(.*?\)(?: -> [^\n]+)?:\n {8}"""(.*?)"""', re.S)


def describe(kind: type) -> None:
    """Does nothing if the source is not installed beside the compiled module."""
    file = getattr(sys.modules.get(kind.__module__), "__file__", None) or ""
    path = os.path.join(os.path.dirname(file), kind.__module__.rpartition(".")[2] + ".py")
    try:
        with open(path, encoding="utf-8") as source:
            kind.__doc__ = docstring_of(source.read(), kind.__name__) or None
    except (OSError, AttributeError, TypeError):
        pass


def docstring_of(source: str, name: str) -> str:
    """The docstring of a class and those of its public methods."""
    found = re.search(rf"^class {name}\b.*?:\n(.*?)(?=^\S|\Z)", source, re.M | re.S)
    if found is None:
        return ""
    own = re.match(r' {4}"""(.*?)"""', found[1], re.S)
    texts = [] if own is None else [own[1]]
    for method in re.split(r"^    def ", found[1], flags=re.M)[1:]:
        said = METHOD.match(method)
        if said is not None:
            texts.append(f"{said[1]}: {said[2]}")
    return "\n\n".join(re.sub(r"\n +", "\n", text).strip() for text in texts)
