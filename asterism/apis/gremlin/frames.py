"""Messages of a client: a header that names the format, then the body; or a text, which is JSON without a header."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from asterism.apis.gremlin.malformed import MalformedMessage


class Format(Enum):
    """The formats of requests; answers have the format of their request."""

    # Plain JSON, which is GraphSON 1.
    JSON = "application/json"
    GRAPHSON_2 = "application/vnd.gremlin-v2.0+json"
    GRAPHSON_3 = "application/vnd.gremlin-v3.0+json"
    GRAPHBINARY = "application/vnd.graphbinary-v1.0"


_FORMATS = {format_.value: format_ for format_ in Format} | {
    "application/vnd.gremlin-v1.0+json": Format.JSON,
    # The names of formats without types, of releases since 3.6.
    "application/vnd.gremlin-v1.0+json-untyped": Format.JSON,
    "application/vnd.gremlin-v2.0+json-untyped": Format.GRAPHSON_2,
    "application/vnd.gremlin-v3.0+json-untyped": Format.GRAPHSON_3,
}
_UNTYPED = "types=false"
_SHOWN_CHARACTERS_MAX = 100


@dataclass(frozen=True, slots=True)
class Frame:
    """One message: its format, the wish for answers without types, and the body."""

    format: Format
    is_untyped: bool
    body: bytes


def read_frame(message: bytes | str) -> Frame:
    """Take the header off a message. Raises MalformedMessage."""
    if isinstance(message, str):
        return Frame(Format.JSON, is_untyped=True, body=message.encode("utf-8", "surrogatepass"))
    if not message:
        raise MalformedMessage("The message is empty; a request begins with the length of its mime type.")
    length = message[0]
    header = message[1 : 1 + length]
    if len(header) < length:
        raise MalformedMessage("The message ends within its mime type.")
    format_, is_untyped = read_mime(header.decode("latin-1"))
    return Frame(format_, is_untyped, message[1 + length :])


def read_mime(mime: str) -> tuple[Format, bool]:
    """Return the format of a mime type, and whether it asks for answers without types."""
    found = _KNOWN.get(mime)
    if found is not None:
        return found
    name, *parameters = (part.strip().lower() for part in mime.split(";"))
    format_ = _FORMATS.get(name)
    if format_ is None:
        shown = ascii(mime[:_SHOWN_CHARACTERS_MAX])
        raise MalformedMessage(
            f"Unsupported mime type: {shown}. The formats are {', '.join(known.value for known in Format)}."
        )
    is_untyped = format_ is Format.JSON or name.endswith("-untyped") or _UNTYPED in parameters
    return format_, is_untyped


# As nearly all requests have them.
_KNOWN = {format_.value: (format_, format_ is Format.JSON) for format_ in Format}
