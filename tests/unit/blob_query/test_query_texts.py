"""Texts that are queries, and texts that are not: with the place of the error, within limits."""

from __future__ import annotations

import pytest
from azure.storage.blob import DelimitedJsonDialect, DelimitedTextDialect
from azure.storage.blob._models import ArrowDialect, ArrowType, QuickQueryDialect
from hypothesis import given
from hypothesis import strategies as st

from asterism.apis.blob.query_request import read_query_request
from asterism.apis.blob.refused_input import RefusedInput
from asterism.languages.blob_sql.errors import MalformedBlobQuery
from asterism.languages.blob_sql.formats import DelimitedText, JsonText
from asterism.languages.blob_sql.parser import parse_query
from asterism.languages.blob_sql.run import QueryRun
from asterism.languages.like import like_matcher
from tests.unit.blob_query.quick_query import request_body


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ("", 0),
        ("SELECT", 6),
        ("SELECT * FROM other", 14),
        ("SELECT a,, b FROM BlobStorage", 9),
        ("SELECT a FROM BlobStorage WHERE", 31),
        ("SELECT a FROM BlobStorage WHERE a = ", 36),
        ("SELECT a FROM BlobStorage LIMIT x", 32),
        ("SELECT a FROM BlobStorage ORDER BY a", 26),
        ("SELECT nosuch(a) FROM BlobStorage", 7),
        ("SELECT LOWER(a, b) FROM BlobStorage", 7),
        ("SELECT 'a FROM BlobStorage", 7),
        ("SELECT CAST(a AS list) FROM BlobStorage", 17),
        ("SELECT SUM(MAX(a)) FROM BlobStorage", 11),
        ("SELECT a, COUNT(*) FROM BlobStorage", 7),
        ("SELECT a FROM BlobStorage WHERE COUNT(*) > 1", 44),
        ("SELECT a FROM BlobStorage; SELECT b", 27),
    ],
)
def test_an_error_names_its_place(text: str, position: int) -> None:
    with pytest.raises(MalformedBlobQuery) as caught:
        parse_query(text)
    assert caught.value.position == position


@pytest.mark.parametrize(
    "text",
    [
        "SELECT " + "(" * 40 + "1" + ")" * 40 + " FROM BlobStorage",
        "SELECT " + "1+" * 300 + "1 FROM BlobStorage",
        "SELECT " + "a," * 2000 + "a FROM BlobStorage",
        "SELECT a FROM BlobStorage WHERE a IN (" + "1," * 20_000 + "1)",
        "SELECT '" + "x" * 300_000 + "' FROM BlobStorage",
    ],
)
def test_a_query_has_limits(text: str) -> None:
    with pytest.raises(MalformedBlobQuery, match="cannot be parsed"):
        parse_query(text)


@pytest.mark.parametrize(
    "expression",
    [
        "(" * 31 + "1" + ")" * 31,
        "(1+" * 31 + "1" + ")" * 31,
        "NOT " * 5000 + "TRUE",
        "- " * 4999 + "1",
        "LOWER(" * 31 + "'A'" + ")" * 31,
        "+".join(["1"] * 200),
        "(" * 30 + "1" + "+1+1+1+1+1+1)" * 30,
        "TRUE" + " AND TRUE" * 5000,
    ],
)
def test_what_the_limits_permit_runs(expression: str) -> None:
    run = QueryRun(parse_query(f"SELECT {expression} FROM BlobStorage"), source=DelimitedText(), output=DelimitedText())
    assert len(run.feed(b"a\n") + run.finish()) == 1


@given(st.text(" SELECTFROMBlobStorageWHERE*.,()[]='\"<>_1%-+/|", max_size=60))
def test_any_text_is_a_query_or_an_error(text: str) -> None:
    with pytest.raises(MalformedBlobQuery):
        parse_query(f"SELECT {text} FROM nothing")


@given(
    st.text("ab%_", max_size=8),
    st.text("ab", max_size=8),
)
def test_like_finds_what_its_definition_says(pattern: str, text: str) -> None:
    def fits(rest: str, remaining: str) -> bool:
        if not rest:
            return not remaining
        if rest[0] == "%":
            return any(fits(rest[1:], remaining[at:]) for at in range(len(remaining) + 1))
        return bool(remaining) and rest[0] in ("_", remaining[0]) and fits(rest[1:], remaining[1:])

    assert like_matcher(pattern, "")(text) is fits(pattern, text)


def test_like_has_an_escape() -> None:
    assert like_matcher("1!%", "!")("1%")
    assert not like_matcher("1!%", "!")("10")


# --- the document ---------------------------------------------------------------------------------------------------


def test_the_clients_formats_are_read() -> None:
    source = DelimitedTextDialect(delimiter=" ", quotechar="'", lineterminator="|", escapechar="\\", has_header=True)
    request = read_query_request(
        request_body("SELECT 1 < 2", blob_format=source, output_format=DelimitedJsonDialect(delimiter="\t"))
    )
    assert request == ("SELECT 1 < 2", DelimitedText(" ", "'", "|", "\\", True), JsonText("\t"))


def test_the_answer_has_the_format_of_the_blob_by_default() -> None:
    assert read_query_request(request_body("SELECT *"))[1:] == (DelimitedText(), DelimitedText())
    assert read_query_request(request_body("x", blob_format=DelimitedJsonDialect()))[1:] == (JsonText(), JsonText())


@pytest.mark.parametrize(
    ("formats", "sentence"),
    [
        ({"output_format": [ArrowDialect(ArrowType.DECIMAL, name="a", precision=4, scale=2)]}, "format arrow"),
        ({"blob_format": QuickQueryDialect.Parquet}, "format parquet"),
        ({"blob_format": DelimitedTextDialect(delimiter="ab")}, "ColumnSeparator"),
        ({"blob_format": DelimitedTextDialect(delimiter='"')}, "must differ"),
    ],
)
def test_other_formats_are_refused(formats: dict[str, object], sentence: str) -> None:
    with pytest.raises(RefusedInput, match=sentence):
        read_query_request(request_body("SELECT *", **formats))


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", "InvalidXmlDocument"),
        (b"<Other/>", "InvalidXmlDocument"),
        (b"<!DOCTYPE a><QueryRequest/>", "InvalidXmlDocument"),
        (b"<QueryRequest><QueryType>SQL</QueryType></QueryRequest>", "InvalidXmlNodeValue"),
        (b"<QueryRequest><QueryType>XPath</QueryType><Expression>a</Expression></QueryRequest>", "InvalidXmlNodeValue"),
        (b" " * 2_000_000, "RequestBodyTooLarge"),
    ],
)
def test_other_documents_are_refused(body: bytes, code: str) -> None:
    with pytest.raises(RefusedInput) as caught:
        read_query_request(body)
    assert caught.value.code == code
