"""GraphSON of all versions into values and nodes of traversals. Typed and plain values may stand side by side."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Mapping
from typing import Any, Final
from uuid import UUID

from asterism.apis.gremlin.exact_numbers import (
    bounded_integer,
    read_big_integer,
    read_decimal,
    read_double,
    read_float,
    read_integer,
)
from asterism.apis.gremlin.malformed import MalformedMessage
from asterism.apis.gremlin.nodes import (
    BULK_MAX,
    DEPTH_MAX,
    TOKEN_KINDS,
    hashable,
    id_text,
    make_class,
    make_edge,
    make_predicate,
    make_strategy,
    make_token,
    make_traversal,
    make_vertex,
    refuse_depth,
)
from asterism.apis.gremlin.times import from_milliseconds, parse_datetime, parse_duration
from asterism.errors import MalformedRequest
from asterism.languages.gremlin.graph.elements import Property, VertexProperty
from asterism.languages.gremlin.tree import CardinalityValue, Lambda, Predicate, Traversal
from asterism.languages.gremlin.values.numbers import Byte, Long, Short
from asterism.languages.gremlin.values.results import Path
from asterism.values.json.text import loads

_SHOWN_CHARACTERS_MAX = 60


def parse_json(body: bytes) -> Any:
    """Parse the text of a request. Integers of any size stay exact where the request says that it has some."""
    try:
        parsed = loads(body)
        # Refuses what the library above refuses no more, so it comes second.
        return json.loads(body) if b"gx:BigInteger" in body else parsed
    except MalformedRequest as problem:
        raise MalformedMessage(problem.reason) from None
    except (ValueError, RecursionError):
        raise MalformedMessage("The text is not valid JSON, or nested too deep.") from None


def read_value(given: Any, depth: int = 0) -> Any:
    """Return the value of parsed JSON. Raises MalformedMessage."""
    kind = type(given)
    if kind is dict:
        if depth > DEPTH_MAX:
            raise refuse_depth()
        name = given.get("@type")
        if name is None:
            return {key: read_value(value, depth + 1) for key, value in given.items()}
        return _read_typed(name, given.get("@value"), depth)
    if kind is list:
        if depth > DEPTH_MAX:
            raise refuse_depth()
        return [read_value(value, depth + 1) for value in given]
    return given


def _read_typed(name: object, value: Any, depth: int) -> Any:
    if not isinstance(name, str):
        raise MalformedMessage("The name of a GraphSON type is not a text.")
    reader = READERS.get(name)
    if reader is not None:
        return reader(value, depth + 1)
    prefix, _, simple = name.partition(":")
    if prefix == "g" and simple in TOKEN_KINDS:
        return make_token(simple, value)
    if prefix == "g" and simple.endswith("Strategy"):
        return _read_strategy(simple, value, depth + 1)
    raise MalformedMessage(f"The GraphSON type {name[:_SHOWN_CHARACTERS_MAX]!a} is not known.")


def _members(value: Any, what: str) -> list[Any]:
    if type(value) is not list:
        raise MalformedMessage(f"The value of {what} is not an array.")
    return value


def _fields(value: Any, what: str) -> Mapping[str, Any]:
    if type(value) is not dict:
        raise MalformedMessage(f"The value of {what} is not an object.")
    return value


def _text(value: Any, what: str) -> str:
    if type(value) is not str:
        raise MalformedMessage(f"The value of {what} is not a text.")
    return value


def _read_list(value: Any, depth: int) -> list[Any]:
    return [read_value(member, depth) for member in _members(value, "g:List")]


def _read_set(value: Any, depth: int) -> set[Any]:
    return {hashable(read_value(member, depth)) for member in _members(value, "g:Set")}


def _read_map(value: Any, depth: int) -> dict[Any, Any]:
    members = _members(value, "g:Map")
    if len(members) % 2:
        raise MalformedMessage("The array of a g:Map has a key without a value.")
    pairs = zip(members[::2], members[1::2], strict=True)
    return {hashable(read_value(key, depth)): read_value(held, depth) for key, held in pairs}


def _read_bulk_set(value: Any, depth: int) -> list[Any]:
    members = _members(value, "g:BulkSet")
    found: list[Any] = []
    if len(members) % 2:
        raise MalformedMessage("The array of a g:BulkSet has a value without a bulk.")
    for member, bulk in zip(members[::2], members[1::2], strict=True):
        count = read_integer(read_value(bulk, depth))
        if count < 0 or len(found) + count > BULK_MAX:
            raise MalformedMessage(f"A bulk set in a request can have {BULK_MAX} members.")
        found.extend([read_value(member, depth)] * count)
    return found


def _read_uuid(value: Any, _: int) -> UUID:
    try:
        return UUID(_text(value, "g:UUID"))
    except ValueError:
        raise MalformedMessage("The value of g:UUID is not a UUID.") from None


def _read_bytes(value: Any, _: int) -> bytes:
    text = _text(value, "gx:ByteBuffer")
    try:
        return base64.b64decode(text, validate=True)
    except (ValueError, binascii.Error):
        # The Python client writes a character for each byte.
        return text.encode("latin-1", "replace")


def _read_predicate(value: Any, depth: int) -> Predicate:
    fields = _fields(value, "g:P")
    held = read_value(fields.get("value"), depth)
    return make_predicate(fields.get("predicate"), [held])


def _read_strategy(name: str, value: Any, depth: int) -> Any:
    given = read_value(value, depth)
    if not isinstance(given, dict):
        given = {}
    settings = given.get("conf", given)
    full_name = given.get("fqcn")
    if not isinstance(settings, dict):
        raise MalformedMessage(f"The settings of {name} are not an object.")
    settings = {key: held for key, held in settings.items() if key not in ("fqcn", "conf")}
    # Some clients name all of them alike.
    return make_strategy(full_name if isinstance(full_name, str) and name == "TraversalStrategy" else name, settings)


def _read_bytecode(value: Any, depth: int) -> Traversal | CardinalityValue:
    fields = _fields(value, "g:Bytecode")
    steps = [_read_instruction(each, depth) for each in _members(fields.get("step") or [], "step")]
    source = [_read_instruction(each, depth) for each in _members(fields.get("source") or [], "source")]
    return make_traversal(steps, source)


def _read_instruction(value: Any, depth: int) -> list[Any]:
    members = _members(value, "an instruction")
    if not members or type(members[0]) is not str:
        raise MalformedMessage("An instruction needs a name.")
    return [members[0], *(read_value(argument, depth) for argument in members[1:])]


def _read_binding(value: Any, depth: int) -> Any:
    return read_value(_fields(value, "g:Binding").get("value"), depth)


def _read_lambda(value: Any, _: int) -> Lambda:
    return Lambda(_text(_fields(value, "g:Lambda").get("script"), "script"))


def _read_vertex(value: Any, depth: int) -> Any:
    fields = _fields(value, "g:Vertex")
    return make_vertex(read_value(fields.get("id"), depth), fields.get("label"))


def _read_edge(value: Any, depth: int) -> Any:
    fields = _fields(value, "g:Edge")
    ends = {end: read_value(fields.get(end), depth) for end in ("outV", "inV")}
    return make_edge(
        read_value(fields.get("id"), depth),
        fields.get("label"),
        out_vertex=make_vertex(ends["outV"], fields.get("outVLabel")),
        in_vertex=make_vertex(ends["inV"], fields.get("inVLabel")),
    )


def _read_vertex_property(value: Any, depth: int) -> VertexProperty:
    fields = _fields(value, "g:VertexProperty")
    return VertexProperty(
        id_text(read_value(fields.get("id"), depth)),
        _text(fields.get("label"), "label"),
        read_value(fields.get("value"), depth),
        make_vertex(read_value(fields.get("vertex", ""), depth), None),
        {},
    )


def _read_property(value: Any, depth: int) -> Property:
    fields = _fields(value, "g:Property")
    nowhere = make_vertex("", None)
    element = make_edge("", None, out_vertex=nowhere, in_vertex=nowhere)
    return Property(_text(fields.get("key"), "key"), read_value(fields.get("value"), depth), element)


def _read_path(value: Any, depth: int) -> Path:
    fields = _fields(value, "g:Path")
    labels = read_value(fields.get("labels"), depth)
    objects = read_value(fields.get("objects"), depth)
    if not isinstance(labels, list) or not isinstance(objects, list):
        raise MalformedMessage("A path needs arrays of labels and objects.")
    return Path([{str(name) for name in each} if isinstance(each, list | set) else set() for each in labels], objects)


def _read_traverser(value: Any, depth: int) -> Any:
    return read_value(_fields(value, "g:Traverser").get("value"), depth)


READERS: Final[Mapping[str, Callable[[Any, int], Any]]] = {
    "g:Int32": lambda value, _: bounded_integer(value, int, 32),
    "g:Int64": lambda value, _: bounded_integer(value, Long, 64),
    "gx:Int16": lambda value, _: bounded_integer(value, Short, 16),
    "gx:Byte": lambda value, _: bounded_integer(value, Byte, 8),
    "g:Double": lambda value, _: read_double(value),
    "g:Float": lambda value, _: read_float(value),
    "gx:BigInteger": lambda value, _: read_big_integer(value),
    "gx:BigDecimal": lambda value, _: read_decimal(value),
    "gx:Char": lambda value, _: _text(value, "gx:Char"),
    "gx:ByteBuffer": _read_bytes,
    "g:UUID": _read_uuid,
    "g:Class": lambda value, _: make_class(_text(value, "g:Class")),
    "g:Date": lambda value, _: from_milliseconds(read_integer(value)),
    "g:Timestamp": lambda value, _: from_milliseconds(read_integer(value)),
    "gx:OffsetDateTime": lambda value, _: parse_datetime(_text(value, "gx:OffsetDateTime")),
    "gx:ZonedDateTime": lambda value, _: parse_datetime(_text(value, "gx:ZonedDateTime")),
    "gx:Instant": lambda value, _: parse_datetime(_text(value, "gx:Instant")),
    "gx:LocalDateTime": lambda value, _: parse_datetime(_text(value, "gx:LocalDateTime")),
    "gx:LocalDate": lambda value, _: parse_datetime(_text(value, "gx:LocalDate")),
    "gx:Duration": lambda value, _: parse_duration(_text(value, "gx:Duration")),
    # Types of Java without a type of Gremlin: their texts.
    "gx:InetAddress": lambda value, _: _text(value, "gx:InetAddress"),
    "gx:LocalTime": lambda value, _: _text(value, "gx:LocalTime"),
    "gx:MonthDay": lambda value, _: _text(value, "gx:MonthDay"),
    "gx:OffsetTime": lambda value, _: _text(value, "gx:OffsetTime"),
    "gx:Period": lambda value, _: _text(value, "gx:Period"),
    "gx:Year": lambda value, _: read_integer(value),
    "gx:YearMonth": lambda value, _: _text(value, "gx:YearMonth"),
    "gx:ZoneOffset": lambda value, _: _text(value, "gx:ZoneOffset"),
    "g:List": _read_list,
    "g:Set": _read_set,
    "g:Map": _read_map,
    "g:BulkSet": _read_bulk_set,
    "g:P": _read_predicate,
    "g:TextP": _read_predicate,
    "g:Bytecode": _read_bytecode,
    "g:Binding": _read_binding,
    "g:Lambda": _read_lambda,
    "g:Vertex": _read_vertex,
    "g:Edge": _read_edge,
    "g:VertexProperty": _read_vertex_property,
    "g:Property": _read_property,
    "g:Path": _read_path,
    "g:Traverser": _read_traverser,
}
