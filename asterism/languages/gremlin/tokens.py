"""The constants of Gremlin's enumerations, with the names of older releases, and those of its classes of options."""

from __future__ import annotations

from asterism.languages.gremlin.tree import Token

_OPERATORS = ("addAll", "and", "assign", "div", "max", "min", "minus", "mult", "or", "sum", "sumLong")
_TYPES = (
    *("BIGDECIMAL", "BIGINT", "BINARY", "BOOLEAN", "BYTE", "CHAR", "DATETIME", "DOUBLE", "DURATION", "EDGE", "FLOAT"),
    *("GRAPH", "INT", "LIST", "LONG", "MAP", "NULL", "NUMBER", "PATH", "PROPERTY", "SET", "SHORT", "STRING", "TREE"),
    *("UUID", "VERTEX", "VPROPERTY"),
)

# Names as users write them, and the name that takes their place.
_NAMES: dict[str, dict[str, str]] = {
    "T": {"id": "id", "label": "label", "key": "key", "value": "value"},
    "Order": {"asc": "asc", "desc": "desc", "incr": "asc", "decr": "desc", "shuffle": "shuffle"},
    "Scope": {"local": "local", "global": "global"},
    "Column": {"keys": "keys", "values": "values"},
    "Pop": {"first": "first", "last": "last", "all": "all", "mixed": "mixed"},
    "Direction": {"OUT": "OUT", "IN": "IN", "BOTH": "BOTH", "from": "OUT", "to": "IN"},
    "Cardinality": {"single": "single", "list": "list", "set": "set"},
    "Barrier": {"normSack": "normSack"},
    "Operator": {name: name for name in _OPERATORS},
    "Pick": {"any": "any", "none": "none", "unproductive": "unproductive"},
    "Merge": {"onCreate": "onCreate", "onMatch": "onMatch", "outV": "outV", "inV": "inV"},
    "DT": {"second": "second", "minute": "minute", "hour": "hour", "day": "day"},
    "GType": {name: name for name in _TYPES} | {name.lower(): name for name in _TYPES},
}

# Constants by the name of their enumeration.
TOKENS: dict[str, dict[str, Token]] = {
    kind: {written: Token(kind, name) for written, name in names.items()} for kind, names in _NAMES.items()
}

# Constants that may stand without their enumeration. `list` and `set` are cardinalities, except where a type is due.
BARE_TOKENS: dict[str, Token] = {written: token for kind in reversed(TOKENS) for written, token in TOKENS[kind].items()}


def _hidden(group: str, *names: str) -> dict[str, str | int]:
    return {name: f"~tinkerpop.{group}.{name}" for name in names}


# Names of options, which are texts and numbers on the wire.
OPTIONS: dict[str, dict[str, str | int]] = {
    "WithOptions": {
        **_hidden("valueMap", "tokens"),
        **_hidden("index", "indexer"),
        **{"none": 0, "ids": 1, "labels": 2, "keys": 4, "values": 8, "all": 15, "list": 0, "map": 1},
    },
    "IO": {
        **_hidden("io", "reader", "writer", "registry"),
        **{"graphson": "graphson", "gryo": "gryo", "graphml": "graphml"},
    },
    "PageRank": _hidden("pageRank", "times", "edges", "propertyName"),
    "PeerPressure": _hidden("peerPressure", "times", "edges", "propertyName"),
    "ConnectedComponent": {
        "component": "gremlin.connectedComponentVertexProgram.component",
        **_hidden("connectedComponent", "edges", "propertyName"),
    },
    "ShortestPath": _hidden("shortestPath", "target", "edges", "distance", "maxDistance", "includeEdges"),
}


def find_token(kind: str, name: str) -> Token | None:
    """Return a constant of an enumeration; the case of its name matters only if two names differ in nothing else."""
    names = TOKENS.get(kind)
    if names is None:
        return None
    token = names.get(name)
    if token is None:
        folded = name.lower().rstrip("_")
        token = next((found for written, found in names.items() if written.lower() == folded), None)
    return token
