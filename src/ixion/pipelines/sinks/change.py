"""One change of an existing table."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    kind: str  # add, widen, rename; partition, order, property
    column: str  # a.b for a field of a struct; a.element.b for one in an array
    to: str  # the type, or the new name
    before: str = ""  # the present type
    sql: str = ""  # the words after ALTER TABLE, for changes other than columns
    said: str = ""  # the same change in words

    def line(self) -> str:
        if self.said:
            return self.said
        if self.kind == "add":
            return f"add column {self.column} {self.to}"
        if self.kind == "rename":
            return f"rename column {self.column} to {self.to}"
        return f"widen column {self.column} from {self.before} to {self.to}"
