"""Keys of maps as texts, for formats whose maps have no other keys."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from asterism.apis.gremlin.times import write_datetime, write_duration
from asterism.languages.gremlin.graph.elements import Edge, Property, Vertex, VertexProperty
from asterism.languages.gremlin.tree import Token


def key_text(key: Any) -> str:
    """Return a key as text: an element by its id, a token by its name, other values as Java prints them."""
    if type(key) is str:
        return key
    match key:
        case Token():
            return key.name
        case Vertex() | Edge() | VertexProperty():
            return key.id
        case Property():
            return key.key
        case bool():
            return "true" if key else "false"
        case None:
            return "null"
        case str():
            return str(key)
        case datetime():
            return write_datetime(key)
        case timedelta():
            return write_duration(key)
        case list() | tuple() | set() | frozenset():
            return f"[{', '.join(key_text(member) for member in key)}]"
        case dict():
            return f"{{{', '.join(f'{key_text(name)}={key_text(held)}' for name, held in key.items())}}}"
        case _:
            return str(key)
