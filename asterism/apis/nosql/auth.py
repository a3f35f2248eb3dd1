"""Who is asking: the link a request must have signed, and whether its key permits what it asks for."""

from __future__ import annotations

from asterism.access.keys import AccountKeys, Grant, grant_allows
from asterism.access.master_key import check_master_key
from asterism.apis.http import Request
from asterism.apis.nosql import headers
from asterism.errors import Forbidden, Unauthorized
from asterism.values.resource_ids import from_text

# The text of a database's resource id, four bytes in base64.
_DATABASE_RID_CHARACTERS = 8

# What the official clients' master tokens begin with.
_MASTER_TOKEN_START = "type%3Dmaster"
_OTHER_TOKENS = {
    "type=resource": "Resource tokens are not available in this version; sign with an account key.",
    "type=aad": "Tokens of Microsoft Entra ID are not available in this version; sign with an account key.",
}


def signed_links(path: str, parts: list[str], resource_type: str) -> list[str]:
    """The links a client may have signed for `path` (without outer slashes), the likeliest first.

    By names: the path up to the resource, or to the owner of a feed. By resource ids: the last id alone, in lower
    case. A database may have a name that looks like a resource id, so both forms count then.
    """
    count = len(parts)
    if resource_type == "colls" and count == 6:
        # Deleting a partition key's items is an operation on the container, and signed as one.
        parts = parts[:4]
        link = "/".join(parts)
    elif count % 2:
        link = path[: -len(parts[-1]) - 1] if count > 1 else ""
        parts = parts[:-1]
    else:
        link = path
    if not parts:
        return [""]
    by_rid = parts[-1].lower()
    if parts[0] == "offers":
        return [by_rid, link]
    if len(parts[1]) == _DATABASE_RID_CHARACTERS and from_text(parts[1]) is not None:
        return [by_rid, link]
    return [link]


def authorize(
    keys: AccountKeys, request: Request, *, path: str, parts: list[str], resource_type: str, now_wall_seconds: float
) -> None:
    """Returns when the request may go on; raises Unauthorized or Forbidden."""
    told = request.headers
    authorization = told.get(headers.AUTHORIZATION)
    if not authorization:
        raise Unauthorized(
            reason="Required Header authorization is missing. Ensure a valid Authorization token is passed."
        )
    if not authorization.startswith(_MASTER_TOKEN_START):
        refuse_other_tokens(authorization)
    grant = check_master_key(
        keys,
        authorization=authorization,
        verb=request.method,
        resource_type=resource_type,
        links=signed_links(path, parts, resource_type),
        date=told.get(headers.ACCESS_DATE) or told.get("date") or "",
        now_wall_seconds=now_wall_seconds,
    )
    if grant is not Grant.FULL and not grant_allows(grant, verb=request.method, is_query=_is_query(request)):
        raise Forbidden(reason="The given request is not authorized: a read-only key signs it, and it is a write.")


def refuse_other_tokens(authorization: str) -> None:
    start = authorization[:16].replace("%3D", "=").replace("%3d", "=").lower()
    for form, reason in _OTHER_TOKENS.items():
        if start.startswith(form):
            raise Unauthorized(reason=reason)


def _is_query(request: Request) -> bool:
    told = request.headers
    return headers.is_true(told.get(headers.IS_QUERY)) or headers.is_true(told.get(headers.IS_QUERY_PLAN))
