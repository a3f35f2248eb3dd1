"""A command as a row of the table: its names, the fields that it knows, who may send it, and the function behind it.

The rows stand in the modules of their families, each in a tuple `COMMANDS`; `table.py` puts them together.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Final

from asterism.values.bson.types import Document

if TYPE_CHECKING:
    from asterism.apis.mongo.call import Call

# A reply without `ok`, which the connection adds: as a document, or as its bytes.
CommandReply = Document | bytes
Answer = CommandReply
Handler = Callable[["Call"], Awaitable[CommandReply]]

NUMBERS: Final = ("int", "long", "double", "decimal")
BOOLEANS: Final = ("bool", *NUMBERS)


class Access(Enum):
    """The rights that a sender needs."""

    # Answered before login.
    NOBODY = "nobody"
    ANY_USER = "any user"
    READ = "read"
    WRITE = "write"
    DATABASE_ADMIN = "database admin"
    USER_ADMIN = "user admin"
    CLUSTER_ADMIN = "cluster admin"


class Target(Enum):
    """The meaning of the value behind the command's name."""

    # Anything: `{ping: 1}`.
    IGNORED = "ignored"
    # The name of a collection of the database.
    COLLECTION = "collection"
    # The name of a collection, or a number for the database itself: `{aggregate: 1}`.
    COLLECTION_OR_DATABASE = "collection or database"
    # The handler checks it.
    OWN = "own"


@dataclass(frozen=True, slots=True)
class FieldRule:
    """The values that a field of a command may have. Null stands for an absent field, unless `null_code` says no."""

    # Names as in `kinds.type_name`; none: any type.
    types: tuple[str, ...] = ()
    code: int = 14
    is_required: bool = False
    # The code that refuses null; None accepts it as if the field were absent.
    null_code: int | None = None
    # The code that refuses a command without the field.
    missing_code: int = 40414


ANY: Final = FieldRule()
BOOL: Final = FieldRule(("bool",))
BOOL_OR_NUMBER: Final = FieldRule(BOOLEANS)
NUMBER: Final = FieldRule(NUMBERS)
STRING: Final = FieldRule(("string",))
OBJECT: Final = FieldRule(("object",))
ARRAY: Final = FieldRule(("array",))


@dataclass(frozen=True, slots=True)
class Command:
    name: str
    handler: Handler
    help: str
    aliases: tuple[str, ...] = ()
    # Fields beside the command's own and the general ones (`arguments.GENERAL_FIELDS`).
    fields: Mapping[str, FieldRule] = field(default_factory=dict)
    target: Target = Target.IGNORED
    # The codes that refuse a target that is no text, and one that cannot be a name.
    target_type_code: int = 73
    access: Access = Access.ANY_USER
    # Refused (13) on any database but `admin`.
    admin_only: bool = False
    in_transaction: bool = False
    # Part of version 1 of the stable API, so that `apiStrict` lets it pass.
    api_version_1: bool = False
    # Fields that are not in `fields` are ignored rather than refused.
    ignores_unknown_fields: bool = False
    is_write: bool = False
    # Accept `readConcern` and `writeConcern`.
    reads: bool = False
    writes: bool = False
    # The rules that an absent field can break, taken from `fields`.
    required: tuple[tuple[str, FieldRule], ...] = field(init=False)

    def __post_init__(self) -> None:
        required = tuple((name, rule) for name, rule in self.fields.items() if rule.is_required)
        object.__setattr__(self, "required", required)
