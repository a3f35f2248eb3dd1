"""The sender of a request: the link it must have signed, and the permissions of its key."""

from __future__ import annotations

from collections.abc import Callable

from asterism.access.entra_token import check_entra_token
from asterism.access.keys import AccountKeys, Grant, grant_allows
from asterism.access.master_key import check_master_key
from asterism.access.resource_token import ResourceGrant, check_resource_token
from asterism.apis.nosql import headers
from asterism.apis.transports.http import Request
from asterism.errors import Forbidden, Unauthorized
from asterism.values.resource_ids import from_text

# The text of a database's resource id, four bytes in base64.
_DATABASE_RID_CHARACTERS = 8
# The place of this kind of resource in a path: dbs/{database}/users/{user}/permissions.
_PERMISSIONS_AT = 4

# The beginning of the official clients' master tokens.
_MASTER_TOKEN_START = "type%3Dmaster"
_RESOURCE_TOKEN_START = "type=resource"
_ENTRA_TOKEN_START = "type=aad"


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
    return [by_rid, link] if is_database_rid(parts[1]) else [link]


def is_database_rid(name: str) -> bool:
    """Return whether a database is named by its resource id, or by a name that looks like one."""
    return len(name) == _DATABASE_RID_CHARACTERS and from_text(name) is not None


def authorize(
    keys: AccountKeys,
    request: Request,
    *,
    parts: list[str],
    links: list[str],
    resource_type: str,
    now_wall_seconds: float,
    expiry_seconds: Callable[[], float] | None = None,
) -> ResourceGrant | None:
    """Return when the request may go on, with its grant if it carries a resource token; raise Unauthorized or
    Forbidden.

    `links` are those that the client may have signed (`signed_links`). `expiry_seconds` reads the time by which tokens
    expire, if that is another than the time of signed dates.
    """
    given = request.headers
    authorization = given.get(headers.AUTHORIZATION)
    if not authorization:
        raise Unauthorized(
            reason="Required Header authorization is missing. Ensure a valid Authorization token is passed."
        )
    if not authorization.startswith(_MASTER_TOKEN_START):
        form = token_form(authorization)
        expiry_now = now_wall_seconds if expiry_seconds is None else expiry_seconds()
        if form == _RESOURCE_TOKEN_START:
            return check_resource_token(keys, authorization, now_wall_seconds=expiry_now)
        if form == _ENTRA_TOKEN_START:
            _check_grant(check_entra_token(keys, authorization, now_wall_seconds=expiry_now), request, parts)
            return None
    grant = check_master_key(
        keys,
        authorization=authorization,
        verb=request.method,
        resource_type=resource_type,
        links=links,
        date=given.get(headers.ACCESS_DATE) or given.get("date") or "",
        now_wall_seconds=now_wall_seconds,
    )
    if grant is not Grant.FULL:
        _check_grant(grant, request, parts)
    return None


def token_form(authorization: str) -> str:
    """Return the beginning of an authorization header, encoded or not."""
    return authorization[:32].replace("%3D", "=").replace("%3d", "=").replace("%26", "&").partition("&")[0].lower()


def _check_grant(grant: Grant, request: Request, parts: list[str]) -> None:
    if grant is Grant.FULL:
        return
    if parts[_PERMISSIONS_AT : _PERMISSIONS_AT + 1] == ["permissions"]:
        # Each answer about one carries a token, which may grant more than reading.
        raise Forbidden(
            reason="The given request is not authorized: a read-only key signs it, and may see no permission."
        )
    if not grant_allows(grant, verb=request.method, is_query=is_query(request, parts)):
        raise Forbidden(reason="The given request is not authorized: a read-only key signs it, and it is a write.")


def is_query(request: Request, parts: list[str]) -> bool:
    """Return whether a request that is a write by its verb only asks. Its headers count where queries go, to a feed:
    elsewhere handlers do not read them, and they must not let a write pass."""
    if request.method != "POST" or not len(parts) % 2:
        return False
    given = request.headers
    is_plan = parts[-1] == "docs" and headers.is_true(given.get(headers.IS_QUERY_PLAN))
    return is_plan or headers.is_true(given.get(headers.IS_QUERY))
