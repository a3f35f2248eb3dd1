"""Pages on the wire: how many items a page may have, where the next one begins, and the envelope around them."""

from __future__ import annotations

import binascii
from collections.abc import Sequence

from asterism.apis.nosql import headers
from asterism.apis.transports.http import HeaderList, Headers, Response
from asterism.errors import MalformedRequest
from asterism.limits import PAGE_BYTES_MAX, PAGE_ITEMS_DEFAULT, PAGE_ITEMS_MAX
from asterism.partitioning.key_range import KeyRange
from asterism.values.json.text import dumps, loads

# Begins every continuation, so that a token of another kind, or of a later version, is refused and not misread.
_MARK = "a1."
# Prefixes of the service's own tokens. They name a position that only the service knows; a client that sends such a
# token is answered from the beginning, as the service does with a token of another container.
_FOREIGN_MARKS = ("-RID:", "+RID:")


def page_items_max(given: Headers) -> int:
    """Return how many items the client wants on a page; the server's default for -1 or without the header."""
    text = given.get(headers.MAX_ITEM_COUNT)
    if text is None:
        return PAGE_ITEMS_DEFAULT
    try:
        count = int(text)
    except ValueError:
        count = 0
    if count == -1:
        return PAGE_ITEMS_DEFAULT
    if count < 1:
        raise MalformedRequest(
            reason=f"The value '{text[:32]}' specified for the header '{headers.MAX_ITEM_COUNT}' is invalid."
        )
    return min(count, PAGE_ITEMS_MAX)


def encode_position(position: bytes) -> str:
    encoded = binascii.b2a_base64(position, newline=False).decode("ascii")
    return _MARK + encoded.rstrip("=").replace("+", "-").replace("/", "_")


def decode_position(token: str) -> bytes:
    text = token.removeprefix(_MARK).replace("-", "+").replace("_", "/")
    try:
        if not token.startswith(_MARK):
            raise ValueError
        return binascii.a2b_base64((text + "=" * (-len(text) % 4)).encode("ascii"), strict_mode=True)
    except ValueError:
        raise MalformedRequest(reason="Invalid Continuation Token: it was not issued by this server.") from None


def encode_composite(position: bytes, partition: KeyRange) -> str:
    """Return the token of a query over several partitions, in the form that the service's gateway gives it: the place,
    and the partition that was read last."""
    start, end = partition.to_texts()
    return dumps([{"token": encode_position(position), "range": {"min": start, "max": end}}]).decode()


def position_of(given: Headers) -> bytes | None:
    token = given.get(headers.CONTINUATION)
    if token and token.startswith("["):
        token = _token_in_composite(token)
    return decode_position(token) if token and not token.startswith(_FOREIGN_MARKS) else None


def _token_in_composite(text: str) -> str:
    match loads(text):
        case [{"token": str(token)}]:
            # Only the position counts: the partition may have been split meanwhile.
            return token
    raise MalformedRequest(reason="Invalid Continuation Token: it was not issued by this server.")


def feed_body(rid: str, name: str, bodies: Sequence[bytes]) -> bytes:
    """Return the envelope of every feed and query, around items that are JSON text already."""
    return b'{"_rid":"%b","%b":[%b],"_count":%d}' % (rid.encode(), name.encode(), b",".join(bodies), len(bodies))


def list_page(
    given: Headers, entries: Sequence[tuple[str, object]], *, rid: str, name: str, more_headers: HeaderList
) -> Response:
    """Return a page of a list that is whole in memory: (sort key, resource) each."""
    items_max = page_items_max(given)
    position = position_of(given)
    first = "" if position is None else position.decode("utf-8", "replace")
    remaining = [entry for entry in entries if entry[0] >= first]
    bodies: list[bytes] = []
    bytes_left = PAGE_BYTES_MAX
    for _, resource in remaining[:items_max]:
        body = dumps(resource)
        bytes_left -= len(body)
        # Scripts may have megabytes each. A page has at least one resource, however large, or it would never end.
        if bytes_left < 0 and bodies:
            break
        bodies.append(body)
    answer_headers = [*more_headers, (headers.ITEM_COUNT, str(len(bodies)))]
    if len(remaining) > len(bodies):
        answer_headers.append((headers.CONTINUATION, encode_position(remaining[len(bodies)][0].encode())))
    return Response(200, answer_headers, feed_body(rid, name, bodies))
