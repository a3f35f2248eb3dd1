"""SharedKey and SharedKeyLite for blobs and queues: a signature over the method, the headers and the address.

As for tables, clients sign the path as they encode it, and it arrives here decoded: its likely encodings are tried.
"""

from __future__ import annotations

import hmac
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Final, Protocol
from urllib.parse import quote, unquote

from asterism.access.header_order import service_order
from asterism.access.shared_key import shared_key_signature, signature_in

# In the order of the signed text, after the method.
_SIGNED_HEADERS: Final = (
    "content-encoding",
    "content-language",
    "content-length",
    "content-md5",
    "content-type",
    "date",
    "if-modified-since",
    "if-match",
    "if-none-match",
    "if-unmodified-since",
    "range",
)
_LENGTH_AT: Final = _SIGNED_HEADERS.index("content-length")
_LITE_HEADERS: Final = ("content-md5", "content-type", "date")
_SERVICE_PREFIX: Final = "x-ms-"
_SERVICE_DATE: Final = "x-ms-date"
# More or longer names are put in order for each request.
_KEPT_NAMES_MAX: Final = 32
_KEPT_NAME_CHARACTERS_MAX: Final = 128

# Punctuation that clients leave unencoded in a path: none (Python, .NET), JavaScript's, that of yarl below Python's
# asyncio client with a plus encoded or not, and Go's.
_LEFT_ALONE: Final = ("", "!()*", "!'()*", "!$&'()*,;=:@", "!$&'()*+,;=:@", "$&+=:@")
# A name of a blob has 1024 characters, and an account and a container come before it. Longer paths are tried in the
# most usual form only.
_PATH_CHARACTERS_MAX: Final = 1200
# The first segments of a path, whose slashes no client encodes: an account and a container, or a container.
_PLAIN_SEGMENTS: Final = (2, 1)


class SignedHeaders(Protocol):
    """Headers of a request, by lower-case name."""

    def get(self, key: str, /) -> str | None: ...

    def keys(self) -> Iterable[str]: ...


def sign_headers(key: bytes, *, verb: str, headers: SignedHeaders, account: str, path: str, query_string: str) -> str:
    """Return the header `Authorization` of a request; the path, with the account, and the query as on the wire."""
    plain, named = _plain_headers(headers, _SIGNED_HEADERS), next(_service_headers(headers))
    text = f"{verb}\n{plain}{named}/{account}{path}{_parameters(query_string)}"
    return f"SharedKey {account}:{shared_key_signature(key, text)}"


def check_signed_headers(
    keys: Sequence[bytes],
    *,
    authorization: str,
    verb: str,
    headers: SignedHeaders,
    account: str,
    paths: Sequence[str],
    query_string: str,
) -> bool:
    """Return True if one of the keys signed this. `paths` are decoded, with the account as the client saw it."""
    given = signature_in(authorization)
    if given is None:
        return False
    is_lite = authorization.startswith("SharedKeyLite")
    head = f"{verb}\n{_plain_headers(headers, _LITE_HEADERS if is_lite else _SIGNED_HEADERS)}"
    tail = _lite_parameters(query_string) if is_lite else _parameters(query_string)
    for service_headers in _service_headers(headers):
        for path in paths:
            for form in wire_forms_of_names(path):
                payload = f"{head}{service_headers}/{account}{form}{tail}".encode("utf-8", "replace")
                for key in keys:
                    if hmac.compare_digest(hmac.digest(key, payload, "sha256"), given):
                        return True
    return False


def _plain_headers(headers: SignedHeaders, names: Sequence[str]) -> str:
    # Each request comes here: lists of a known order, and no generators.
    get = headers.get
    values = [get(name) or "" for name in names]
    if names is _SIGNED_HEADERS and values[_LENGTH_AT] == "0":
        values[_LENGTH_AT] = ""
    if get(_SERVICE_DATE) is not None:
        # It takes the place of the other date, which a client may not even know: its library sends it.
        values[names.index("date")] = ""
    values.append("")
    return "\n".join(values)


def _service_headers(headers: SignedHeaders) -> Iterator[str]:
    """Yield the headers of the service in the two orders in which clients sign them."""
    names = [name for name in headers.keys() if name.startswith(_SERVICE_PREFIX)]  # noqa: SIM118 - a protocol
    is_short = len(names) <= _KEPT_NAMES_MAX and max(map(len, names), default=0) <= _KEPT_NAME_CHARACTERS_MAX
    for order in (_kept_orders if is_short else _orders)(tuple(names)):
        yield "".join([f"{name}:{(headers.get(name) or '').strip()}\n" for name in order])


def _orders(names: Sequence[str]) -> list[list[str]]:
    """Return the names of the service's headers in the orders in which clients sign them, the likelier first."""
    different = set(names)
    usual, by_ascii = service_order(different), sorted(different)
    return [usual] if by_ascii == usual else [usual, by_ascii]


# The requests of a client have the same few names in the same order.
_kept_orders = lru_cache(maxsize=256)(_orders)


def _parameters(query_string: str) -> str:
    """Return the parameters as they are signed: sorted by lower-case name, empty values kept, a plus left a plus."""
    if not query_string:
        return ""
    values: dict[str, list[str]] = {}
    for pair in query_string.split("&"):
        name, _, value = pair.partition("=")
        if name:
            values.setdefault(unquote(name).lower(), []).append(unquote(value))
    return "".join(f"\n{name}:{','.join(sorted(values[name]))}" for name in sorted(values))


def _lite_parameters(query_string: str) -> str:
    for pair in query_string.split("&"):
        name, _, value = pair.partition("=")
        if name.lower() == "comp":
            return f"?comp={unquote(value)}"
    return ""


def wire_forms_of_names(path: str) -> Iterator[str]:
    """Yield the encodings that a client may have signed for a path of names, the likeliest first."""
    usual = quote(path, safe="/")
    yield usual
    if len(path) > _PATH_CHARACTERS_MAX:
        return
    tried = {usual}
    segments = path.split("/")
    for left_alone in _LEFT_ALONE:
        forms = [quote(path, safe=f"/{left_alone}")]
        for count in _PLAIN_SEGMENTS:
            # A path begins with a slash, so its first segment is empty. Java and Go encode the slashes of a name.
            front, name = segments[: count + 1], segments[count + 1 :]
            if len(name) > 1:
                front_form = quote("/".join(front), safe=f"/{left_alone}")
                forms.append(f"{front_form}/{quote('/'.join(name), safe=left_alone)}")
        for form in forms:
            if form not in tried:
                tried.add(form)
                yield form
