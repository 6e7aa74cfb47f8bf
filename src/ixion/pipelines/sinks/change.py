"""One change of a table that is there."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    kind: str  # add, widen, rename; partition, order, property
    column: str  # a.b for a field of a struct; a.element.b for one in an array
    to: str  # the type, or the new name
    before: str = ""  # the type that it has
    sql: str = ""  # what follows ALTER TABLE, if it is not about a column
    said: str = ""  # the same in words

    def line(self) -> str:
        if self.said:
            return self.said
        if self.kind == "add":
            return f"add column {self.column} {self.to}"
        if self.kind == "rename":
            return f"rename column {self.column} to {self.to}"
        return f"widen column {self.column} from {self.before} to {self.to}"
