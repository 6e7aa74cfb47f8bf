"""The notation of the message tables: a class is a table, a line is a field.

    class FetchTopic(Struct):
        topic: TopicName = field("4-12", ignorable=True)
        topic_id: Uuid = field("13+", ignorable=True)
        partitions: tuple[FetchPartition, ...]

reads: up to version 12 the topic goes by name, from 13 on by id, and every version has partitions. Handlers use the
same class: a frozen, slotted value with keyword arguments, whose fields the type checker knows.

- The annotation is the type. `X | None` may be null, in all versions unless `nullable` gives a range.
- A line without `=` is in every version and must be given. A plain value after `=` is the default.
- `field("7+")` limits the versions; without `default` it has the empty value of its type (0, "", (), 16 zero bytes).
- `tag=1` makes it a tagged field; it is written only when it differs from its default.
- Writing a version that lacks a field fails unless the field has its default; with `ignorable` its value is dropped.

Tables omit versions that the API does not serve (see `registry`): "4-12" in an API that starts with 4 means "the oldest
up to 12". Nothing is computed from a table before its first use (see `resolve`).
"""

import sys
from collections.abc import Mapping
from typing import Annotated, Any, Final, NamedTuple, Self, dataclass_transform, get_args, get_origin

from ixion.language.model.ids import ZERO_ID
from ixion.language.protocol.codec.sink import Deferred

LATEST: Final = 32767  # versions are int16
OUR_TAGS: Final = 5000  # tagged fields from here on are ours; Kafka's readers skip tags that they do not know


class Kind(NamedTuple):
    """A type of the protocol, by Kafka's name, and its empty value."""

    name: str
    empty: object


Bool = Annotated[bool, Kind("bool", False)]
Int8 = Annotated[int, Kind("int8", 0)]
Int16 = Annotated[int, Kind("int16", 0)]
UInt16 = Annotated[int, Kind("uint16", 0)]
Int32 = Annotated[int, Kind("int32", 0)]
UInt32 = Annotated[int, Kind("uint32", 0)]
Int64 = Annotated[int, Kind("int64", 0)]
Float64 = Annotated[float, Kind("float64", 0.0)]
Uuid = Annotated[bytes, Kind("uuid", ZERO_ID)]
String = Annotated[str, Kind("string", "")]
Bytes = Annotated[bytes, Kind("bytes", b"")]
Records = Annotated[bytes | memoryview, Kind("records", b"")]
SentRecords = Annotated[bytes | memoryview | Deferred, Kind("records", b"")]  # many records are read as they are sent

# Strings on the wire; the names say what they identify.
TopicName = String
GroupId = String
TransactionalId = String
BrokerId = Int32
ProducerId = Int64


def versions(text: str) -> tuple[int, int]:
    """The first and the last version of "3", "3-7", "3+" or "none", both inclusive.

    >>> versions("3-7")
    (3, 7)
    """
    if text == "none":
        return 0, -1
    if text.endswith("+"):
        return int(text[:-1]), LATEST
    first, _, last = text.partition("-")
    return int(first), int(last or first)


EVERY: Final = (0, LATEST)
UNSET: Final = Kind("unset", None)


class Column(NamedTuple):
    """One field of a table."""

    name: str
    annotation: Any
    versions: tuple[int, int]
    nullable: tuple[int, int]
    default: object
    tag: int
    ignorable: bool
    compactable: bool


class Spec(NamedTuple):
    """The part after `=` in a table; the name and the type are added when the class is made."""

    versions: tuple[int, int] = EVERY
    nullable: tuple[int, int] = EVERY
    default: object = UNSET
    tag: int = -1
    ignorable: bool = False
    compactable: bool = True


def field(
    within: str = "0+",
    *,
    nullable: str = "0+",
    default: object = UNSET,
    tag: int = -1,
    ignorable: bool = False,
    compactable: bool = True,
) -> Any:
    """A field with options. `compactable=False` keeps the classic length prefix in flexible versions."""
    return Spec(versions(within), versions(nullable), default, tag, ignorable, compactable)


def empty(annotation: Any) -> object:
    """The value of a field that was not set."""
    if get_origin(annotation) is Annotated:
        return annotation.__metadata__[0].empty
    if get_origin(annotation) is tuple:
        return ()
    if isinstance(annotation, StructMeta):
        return annotation.blank()
    if type(None) in get_args(annotation):
        # As in Kafka, a nullable field is empty by default, not null, unless the table says otherwise.
        return empty(get_args(annotation)[0])
    raise TypeError(f"{annotation!r} is no type of a table")


def annotations_of(namespace: Mapping[str, Any]) -> dict[str, Any]:
    """The annotations of a class body before the class exists."""
    if sys.version_info >= (3, 14):
        import annotationlib

        annotate = annotationlib.get_annotate_from_class_namespace(namespace)
        return annotationlib.call_annotate_function(annotate, annotationlib.Format.VALUE) if annotate else {}
    result: dict[str, Any] = namespace.get("__annotations__", {})
    return result


CONSTRUCTOR: Final = """
def __new__(cls, {parameters}):
    self = draft()
    {assignments}
    self.__class__ = frozen
    return self
"""


@dataclass_transform(kw_only_default=True, frozen_default=True)
class StructMeta(type):
    """Turns a table into a frozen, slotted class, and makes the draft through which its values are filled.

    This is `@dataclass(frozen=True, slots=True, kw_only=True)` in 30 µs a class instead of 570, with values built in
    half the time; a broker needs some hundred of these classes before its first answer. The constructor, 35 µs more, is
    made with the first value: much is only ever decoded, which goes by the draft.
    """

    columns: tuple[Column, ...]
    required: frozenset[str]
    draft: type
    within: tuple[int, int]
    flexible: tuple[int, int]

    def __new__(
        mcs,
        name: str,
        bases: tuple[type, ...],
        namespace: dict[str, Any],
        *,
        within: str = "none",
        flexible: str = "none",
    ) -> "StructMeta":
        annotations = annotations_of(namespace)
        required = frozenset(annotations.keys() - namespace.keys())
        columns = []
        for line, annotation in annotations.items():
            given = namespace.pop(line, UNSET)
            spec = given if isinstance(given, Spec) else Spec(default=given)
            try:
                default = empty(annotation) if spec.default is UNSET else spec.default
            except TypeError as error:
                raise TypeError(f"{name}.{line}: {error}") from None
            columns.append(Column(line, annotation, *spec._replace(default=default)))
        namespace["__slots__"] = tuple(annotations)
        cls = super().__new__(mcs, name, bases, namespace)
        cls.columns = tuple(columns)
        cls.required = required
        cls.within = versions(within)
        cls.flexible = versions(flexible)
        if bases:
            cls.draft = type.__new__(mcs, name, (cls,), DRAFT)
        return cls

    def add_constructor(cls) -> None:
        names = [column.name for column in cls.columns]
        scope: dict[str, Any] = {f"default_{column.name}": column.default for column in cls.columns}
        scope.update(draft=cls.draft, frozen=cls)
        parameters = ", ".join(name if name in cls.required else f"{name}=default_{name}" for name in names)
        assignments = "\n    ".join(f"self.{name} = {name}" for name in names)
        source = CONSTRUCTOR.format(parameters=f"*, {parameters}" if names else "", assignments=assignments)
        exec(source, scope)  # noqa: S102 (the names come from our own class bodies)
        cls.__new__ = staticmethod(scope["__new__"])  # type: ignore[method-assign]

    def blank(cls) -> Any:
        """A value with every field at its default."""
        return fill(cls, (column.default for column in cls.columns))


DRAFT: Final[dict[str, Any]] = {
    "__slots__": (),
    "__new__": object.__new__,
    "__setattr__": object.__setattr__,
    "__delattr__": object.__delattr__,
}


def fill(cls: StructMeta, values: Any) -> Any:
    """A value of `cls` from the values of its fields, in the order of the table."""
    value = cls.draft()
    for column, content in zip(cls.columns, values, strict=True):
        setattr(value, column.name, content)
    value.__class__ = cls
    return value


class Struct(metaclass=StructMeta):
    """The base of every message and of every structure inside one. Values are equal when all their fields are."""

    def __new__(cls, **values: Any) -> Self:
        cls.add_constructor()
        return cls(**values)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is frozen: make another with replace({name}=...)")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} is frozen: {name} stays")

    def _values(self) -> tuple[object, ...]:
        return tuple([getattr(self, column.name) for column in type(self).columns])

    def replace(self, **changes: Any) -> Self:
        """The same value with some fields changed."""
        kept = {column.name: getattr(self, column.name) for column in type(self).columns}
        return type(self)(**(kept | changes))

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self._values() == other._values()

    def __hash__(self) -> int:
        return hash(self._values())

    def __repr__(self) -> str:
        shown = ", ".join(f"{column.name}={getattr(self, column.name)!r}" for column in type(self).columns)
        return f"{type(self).__name__}({shown})"

    def __reduce__(self) -> tuple[Any, ...]:
        return fill, (type(self), self._values())
