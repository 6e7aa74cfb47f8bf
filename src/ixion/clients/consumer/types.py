"""The types of keys and values, by which consumers and their records are generic: those of the deserializers.

Without a deserializer the type is Any: `record.value` is bytes or None. A null key or value is None for every type, as
no deserializer sees it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    K = TypeVar("K", default=Any)
    V = TypeVar("V", default=Any)
else:
    from typing import TypeVar

    K = TypeVar("K")
    V = TypeVar("V")
