"""SharedKey and SharedKeyLite for tables: check of a signature over the request against the keys of the account.

A client signs the path as it puts it on the wire, and clients encode the same path differently. The path arrives here
decoded, so its possible encodings are tried, the likeliest first: a client encodes a character always or never, apart
from the punctuation of the URL itself, which nearly all clients leave unencoded.
"""

from __future__ import annotations

import binascii
import hmac
import re
from collections.abc import Iterator, Sequence
from itertools import combinations
from urllib.parse import quote

# Characters that no client encodes, or punctuation of a URL without keys.
_PLAIN_PATH = re.compile(r"[A-Za-z0-9/_.~$()',=-]*\Z", re.ASCII)
# Punctuation that a URL may contain encoded or not. Everything else has one form only.
_EITHER_WAY = "!$&'()*+,;=:@/"
# Punctuation that clients leave unencoded inside a key: none (Python, .NET), as JavaScript's encodeURIComponent, as
# yarl below Python's asyncio client, all but the slash, and as Go.
_LEFT_ALONE = ("", "!'()*", "!$&'()*,;=:@", "!$&'()*+,;=:@", "$&+=:@")
# Beyond those, every choice of at most this many kinds of punctuation is tried, while the tried forms together are no
# longer than this: the client is not authenticated yet, and may cost a few milliseconds at most.
_KINDS_TRIED_MAX = 2
_CHARACTERS_TRIED_MAX = 16 * 1024
# No decoded path of the protocol is longer: an account, a table and two keys of 512 characters, quotes doubled.
_PATH_CHARACTERS_MAX = 4096

_SCHEMES = ("SharedKey ", "SharedKeyLite ")


def signed_account(authorization: str) -> str:
    """Return the account named in the header; empty if the header has another form."""
    _, _, rest = authorization.partition(" ")
    return rest.partition(":")[0].strip()


def is_shared_key(authorization: str) -> bool:
    return authorization.startswith(_SCHEMES)


def check_shared_key(
    keys: Sequence[bytes],
    *,
    authorization: str,
    verb: str,
    content_md5: str,
    content_type: str,
    date: str,
    account: str,
    paths: Sequence[str],
    comp: str | None,
) -> bool:
    """Return True if one of the keys signed this. `paths` are decoded, with the account as the client saw it."""
    given = signature_in(authorization)
    if given is None:
        return False
    head = (
        f"{date}\n/{account}"
        if authorization.startswith("SharedKeyLite ")
        else (f"{verb}\n{content_md5}\n{content_type}\n{date}\n/{account}")
    )
    tail = "" if comp is None else f"?comp={comp}"
    for path in paths:
        for form in wire_forms(path):
            payload = f"{head}{form}{tail}".encode("utf-8", "replace")
            for key in keys:
                if hmac.compare_digest(hmac.digest(key, payload, "sha256"), given):
                    return True
    return False


def shared_key_signature(key: bytes, text: str) -> str:
    """Return the signature of a text, as a client puts it into a header or a URL."""
    return binascii.b2a_base64(hmac.digest(key, text.encode(), "sha256"), newline=False).decode("ascii")


def wire_forms(path: str) -> Iterator[str]:
    """Yield the encodings that a client may have sent, and signed, for a path."""
    if _PLAIN_PATH.match(path):
        # Nearly every request: nothing was encoded.
        yield path
    if len(path) > _PATH_CHARACTERS_MAX:
        # Not a valid path: refused as such if it was signed in the most usual form.
        yield quote(path, safe="/(),='")
        return
    front, parenthesis, keys = path.partition("(")
    if not parenthesis:
        yield from _fronts(front)
        return
    fronts = tuple(_fronts(front))
    parts = _QUOTED_KEY.split(keys)
    tried: set[str] = set()
    characters_tried = 0
    for number, left_alone in enumerate(_choices(keys)):
        if number >= len(_LEFT_ALONE) and characters_tried > _CHARACTERS_TRIED_MAX:
            return
        keys_form = _keys_form(parts, left_alone)
        quoted = (quote(path, safe=f"/(),={left_alone}"), quote(path, safe=f"/{left_alone}"))
        for form in (*(f"{front_form}({keys_form}" for front_form in fronts), *quoted):
            if form not in tried:
                tried.add(form)
                characters_tried += len(form)
                yield form


def _fronts(front: str) -> Iterator[str]:
    """Yield the encodings of the part before the keys. An invalid name may have slashes, which are encoded as well."""
    yield quote(front, safe="/$!&'*+,;=:@")
    yield quote(front, safe="/")
    inner = front.removeprefix("/")
    account, slash, rest = inner.partition("/")
    if "/" in rest:
        yield f"/{quote(account)}/{quote(rest, safe='')}"
    if slash:
        yield f"/{quote(inner, safe='')}"


def _choices(keys: str) -> Iterator[str]:
    yield from _LEFT_ALONE
    present = [kind for kind in _EITHER_WAY if kind in keys]
    for count in range(1, min(len(present), _KINDS_TRIED_MAX) + 1):
        for chosen in combinations(present, count):
            yield "".join(chosen)


# Possessive: a quoted text ends at the first quote that is not doubled, without backtracking.
_QUOTED_KEY = re.compile(r"((?:\A|=)')((?:[^']|'')*+)('(?=,|\)\Z))")
_KEY_GROUP, _GROUPS = 2, 4


def _keys_form(parts: Sequence[str | None], left_alone: str) -> str:
    """Return the text between the parentheses, split at the quoted keys: the keys encoded as the client does, the
    punctuation around them unchanged."""
    return "".join(
        quote(part or "", safe=left_alone) if index % _GROUPS == _KEY_GROUP else part or ""
        for index, part in enumerate(parts)
    )


def signature_in(authorization: str) -> bytes | None:
    """Return the signature of the header `SharedKey ACCOUNT:SIGNATURE`; None if it is not base64 text."""
    try:
        return binascii.a2b_base64(authorization.rpartition(":")[2].strip(), strict_mode=True)
    except ValueError:
        return None
