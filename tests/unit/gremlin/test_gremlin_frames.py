"""Messages of a client: headers, ids, operations, and all sorts of other bytes."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asterism.apis.gremlin.frames import Format, read_frame
from asterism.apis.gremlin.malformed import MalformedMessage
from asterism.apis.gremlin.requests import NO_ID, read_request
from asterism.languages.gremlin.tree import Instruction, Predicate, Token, Traversal

REQUEST_ID = "46ee0b0e-34b1-4bf6-b8b0-5b9b1a7ba0ba"


def framed(mime: str, body: object) -> bytes:
    text = body if isinstance(body, bytes) else json.dumps(body).encode()
    return bytes([len(mime)]) + mime.encode() + text


@pytest.mark.parametrize(
    ("mime", "format_", "is_untyped"),
    [
        ("application/json", Format.JSON, True),
        ("application/vnd.gremlin-v1.0+json", Format.JSON, True),
        ("application/vnd.gremlin-v2.0+json", Format.GRAPHSON_2, False),
        ("application/vnd.gremlin-v2.0+json;types=false", Format.GRAPHSON_2, True),
        ("application/vnd.gremlin-v3.0+json", Format.GRAPHSON_3, False),
        ("application/vnd.gremlin-v3.0+json; types=false", Format.GRAPHSON_3, True),
        ("application/vnd.graphbinary-v1.0", Format.GRAPHBINARY, False),
    ],
)
def test_the_header_of_a_message_names_its_format(mime: str, format_: Format, is_untyped: bool) -> None:
    frame = read_frame(framed(mime, b"{}"))

    assert (frame.format, frame.is_untyped, frame.body) == (format_, is_untyped, b"{}")


def test_a_text_message_is_json_without_a_header() -> None:
    assert read_frame('{"op":"eval"}').body == b'{"op":"eval"}'


@pytest.mark.parametrize("message", [b"", b"\x10applicat", b"\x05hello{}", framed("application/xml", b"<a/>")])
def test_a_message_without_a_known_header_is_refused(message: bytes) -> None:
    with pytest.raises(MalformedMessage):
        read_frame(message)


def test_a_script_of_the_python_client_is_read() -> None:
    message = framed(
        "application/vnd.gremlin-v2.0+json",
        {
            "requestId": {"@type": "g:UUID", "@value": REQUEST_ID},
            "processor": "",
            "op": "eval",
            "args": {"gremlin": "g.V(x).out()", "aliases": {"g": "g"}, "bindings": {"x": 1}},
        },
    )

    request = read_request(read_frame(message))

    assert (request.request_id, request.operation, request.processor) == (REQUEST_ID, "eval", "")
    assert request.arguments == {"gremlin": "g.V(x).out()", "aliases": {"g": "g"}, "bindings": {"x": 1}}


def test_arguments_of_the_java_client_are_read() -> None:
    arguments = {
        "@type": "g:Map",
        "@value": [
            "batchSize", {"@type": "g:Int32", "@value": 64},
            "gremlin", "g.V()",
            "bindings", {"@type": "g:Map", "@value": ["a", {"@type": "g:Int32", "@value": 1}]},
        ],
    }  # fmt: skip
    message = framed("application/vnd.gremlin-v3.0+json", {"requestId": REQUEST_ID, "op": "eval", "args": arguments})

    request = read_request(read_frame(message))

    assert request.arguments == {"batchSize": 64, "gremlin": "g.V()", "bindings": {"a": 1}}


def test_bytecode_in_graphson_becomes_a_traversal() -> None:
    age = {"@type": "g:Int32", "@value": 30}
    steps = [
        ["V"],
        ["has", "person", "age", {"@type": "g:P", "@value": {"predicate": "gt", "value": age}}],
        ["order"],
        ["by", "age", {"@type": "g:Order", "@value": "decr"}],
    ]  # fmt: skip
    message = framed(
        "application/vnd.gremlin-v3.0+json",
        {
            "requestId": {"@type": "g:UUID", "@value": REQUEST_ID},
            "processor": "traversal",
            "op": "bytecode",
            "args": {"gremlin": {"@type": "g:Bytecode", "@value": {"step": steps}}, "aliases": {"g": "g"}},
        },
    )

    request = read_request(read_frame(message))

    assert request.arguments["gremlin"] == Traversal(
        (
            Instruction("V"),
            Instruction("has", ("person", "age", Predicate("gt", 30))),
            Instruction("order"),
            Instruction("by", ("age", Token("Order", "desc"))),
        )
    )


def test_a_script_in_graphbinary_is_read() -> None:
    body = (
        bytes.fromhex("81") + bytes(16) + b"\0\0\0\x04eval" + b"\0\0\0\0" + b"\0\0\0\x03"
        b"\x03\0\0\0\0\x07gremlin" b"\x03\0\0\0\0\x05g.V()"
        b"\x03\0\0\0\0\x07aliases" b"\x0a\0\0\0\0\x01\x03\0\0\0\0\x01g\x03\0\0\0\0\x01g"
        b"\x03\0\0\0\0\x08bindings" b"\xfe\x01"
    )  # fmt: skip

    request = read_request(read_frame(framed("application/vnd.graphbinary-v1.0", body)))

    assert request.problem is None
    assert (request.request_id, request.operation) == (NO_ID, "eval")
    assert request.arguments == {"gremlin": "g.V()", "aliases": {"g": "g"}, "bindings": None}


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b'{"requestId": 5, "op": "eval"}',
        b'{"requestId": "no uuid", "op": "eval"}',
        b'{"requestId": "%b", "op": 5}' % REQUEST_ID.encode(),
        b'{"requestId": "%b", "op": "eval", "args": []}' % REQUEST_ID.encode(),
        b"[" * 2000,
        b'{"requestId": "%b", "op": "eval", "args": {"gremlin": %b}}'
        % (REQUEST_ID.encode(), b'{"@type":"g:List","@value":[' * 300 + b"]}" * 300),
    ],
)
def test_a_body_that_is_no_request_is_a_problem_of_the_request(body: bytes) -> None:
    assert read_request(read_frame(framed("application/vnd.gremlin-v2.0+json", body))).problem is not None


def test_the_refusal_of_bad_arguments_still_knows_the_request() -> None:
    body = {"requestId": REQUEST_ID, "op": "eval", "args": {"gremlin": {"@type": "g:Nothing", "@value": 1}}}

    request = read_request(read_frame(framed("application/vnd.gremlin-v3.0+json", body)))

    assert request.problem is not None
    assert request.request_id == REQUEST_ID


@given(st.binary(max_size=400))
def test_any_bytes_are_a_request_or_a_refusal(message: bytes) -> None:
    for start in (b"", b"\x20application/vnd.graphbinary-v1.0", b"\x21application/vnd.gremlin-v3.0+json"):
        try:
            read_request(read_frame(start + message))
        except MalformedMessage:
            continue
