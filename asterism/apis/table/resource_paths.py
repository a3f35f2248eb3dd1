"""The resource that a path names: the service, its tables, a table, its entities, an entity, or a batch."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from asterism.apis.table.errors import bad_query_syntax


class Kind(StrEnum):
    SERVICE = "service"
    TABLES = "tables"
    TABLE = "table"
    ENTITIES = "entities"
    ENTITY = "entity"
    BATCH = "batch"
    # A path with an extra segment, from a table in the address of the account.
    BEHIND_A_TABLE = "behind a table"


class Resource(NamedTuple):
    kind: Kind
    table: str = ""
    # The text between the parentheses after the name.
    keys: str = ""
    # Of a path with an extra segment: the rest.
    rest: str = ""


_SERVICE = Resource(Kind.SERVICE)
_TABLES = Resource(Kind.TABLES)
_BATCH = Resource(Kind.BATCH)


def read_resource(path: str) -> Resource:
    """Read a decoded path after the account, without its leading slash."""
    if path == "Tables" or path == "Tables()":
        return _TABLES
    if path == "$batch":
        return _BATCH
    if path == "":
        return _SERVICE
    name, parenthesis, keys = path.partition("(")
    if "/" in name:
        table, _, rest = name.partition("/")
        if rest or parenthesis:
            return Resource(Kind.BEHIND_A_TABLE, table, rest=f"{rest}{parenthesis}{keys}")
        name = table
    if not parenthesis:
        return Resource(Kind.ENTITIES, name)
    if not keys.endswith(")"):
        raise bad_query_syntax()
    keys = keys[:-1]
    if name == "Tables":
        return Resource(Kind.TABLE, _quoted(keys))
    return Resource(Kind.ENTITY, name, keys) if keys.strip() else Resource(Kind.ENTITIES, name)


def _quoted(text: str) -> str:
    stripped = text.strip()
    if len(stripped) < 2 or stripped[0] != "'" or stripped[-1] != "'":
        raise bad_query_syntax()
    return stripped[1:-1].replace("''", "'")
