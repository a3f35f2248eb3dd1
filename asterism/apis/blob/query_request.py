"""The document of a quick query: the text of the query, and the formats of the blob and of the answer."""

from __future__ import annotations

from typing import Final, NamedTuple
from xml.etree import ElementTree

from asterism.apis.blob.refused_input import RefusedInput, invalid_document
from asterism.languages.blob_sql.formats import DelimitedText, Format, JsonText
from asterism.limits import KIB

# A query of 256 KiB, with every character escaped for XML, and the formats.
QUERY_REQUEST_BYTES_MAX: Final = 1600 * KIB
_RECORD_SEPARATOR_CHARACTERS_MAX: Final = 8


class QueryRequest(NamedTuple):
    expression: str
    source: Format
    output: Format


def read_query_request(body: bytes) -> QueryRequest:
    """Return what a document `QueryRequest` asks for. Without a format of its own, an answer has the blob's."""
    root = _root(body)
    query_type = (root.findtext("QueryType") or "").strip()
    if query_type.upper() != "SQL":
        raise _invalid_value("QueryType", "It must be SQL.")
    expression = root.findtext("Expression")
    if not expression or not expression.strip():
        raise _invalid_value("Expression", "It must be a query.")
    source = _format(root.find("InputSerialization/Format"), DelimitedText(), "InputSerialization")
    return QueryRequest(
        expression, source, _format(root.find("OutputSerialization/Format"), source, "OutputSerialization")
    )


def _root(body: bytes) -> ElementTree.Element:
    if len(body) > QUERY_REQUEST_BYTES_MAX:
        raise RefusedInput(
            413, "RequestBodyTooLarge", "The request body is too large and exceeds the maximum permissible limit."
        )
    # With a DTD, a few bytes can stand for gigabytes. The bytes of UTF-16 have zeros between them.
    if b"<!DOCTYPE" in body.replace(b"\0", b""):
        raise invalid_document("The document must not have a DTD.")
    try:
        root = ElementTree.fromstring(body)
    except (ElementTree.ParseError, ValueError, LookupError):
        raise invalid_document() from None
    for element in root.iter():
        element.tag = str(element.tag).rpartition("}")[2]
    if root.tag != "QueryRequest":
        raise invalid_document("The root of the document must be QueryRequest.")
    return root


def _format(found: ElementTree.Element | None, default: Format, side: str) -> Format:
    if found is None:
        return default
    kind = (found.findtext("Type") or "").strip().lower()
    match kind:
        case "delimited":
            settings = found.find("DelimitedTextConfiguration")
            return DelimitedText() if settings is None else _delimited(settings)
        case "json":
            return JsonText(_separator(found.find("JsonTextConfiguration")))
        case "arrow" | "parquet":
            raise RefusedInput(
                400, "InvalidInput", f"The format {kind} of {side} is not supported. Use delimited or json."
            )
        case _:
            raise _invalid_value("Type", "The formats are delimited and json.")


def _delimited(settings: ElementTree.Element) -> DelimitedText:
    column_separator = _sign(settings, "ColumnSeparator", ",") or ","
    quote = _sign(settings, "FieldQuote", '"')
    escape = _sign(settings, "EscapeChar", "")
    record_separator = _separator(settings)
    has_headers = (settings.findtext("HasHeaders") or "false").strip().lower()
    if has_headers not in ("true", "false"):
        raise _invalid_value("HasHeaders", "It must be true or false.")
    # A quote that escapes itself is the rule without an escape.
    escape = "" if escape == quote else escape
    signs = [sign for sign in (column_separator, quote, escape, record_separator) if sign]
    if len(set(signs)) < len(signs):
        raise _invalid_value("DelimitedTextConfiguration", "Separators, quote and escape must differ.")
    return DelimitedText(column_separator, quote, record_separator, escape, has_headers == "true")


def _sign(settings: ElementTree.Element, name: str, default: str) -> str:
    """Return one character, or none; blanks are characters here."""
    element = settings.find(name)
    text = default if element is None else element.text or ""
    if len(text) > 1:
        raise _invalid_value(name, "It must be one character.")
    return text


def _separator(settings: ElementTree.Element | None) -> str:
    text = (settings.findtext("RecordSeparator") if settings is not None else "") or "\n"
    if len(text) > _RECORD_SEPARATOR_CHARACTERS_MAX:
        raise _invalid_value("RecordSeparator", f"It has at most {_RECORD_SEPARATOR_CHARACTERS_MAX} characters.")
    return text


def _invalid_value(name: str, reason: str) -> RefusedInput:
    return RefusedInput(
        400,
        "InvalidXmlNodeValue",
        f"The value for one of the XML nodes is not in the correct format: {name}. {reason}",
    )
