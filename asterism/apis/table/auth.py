"""Authentication: a signature with the account's key, a shared access signature, or a bearer token."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from asterism.access.bearer_token import check_bearer_token
from asterism.access.http_dates import DATE_SKEW_SECONDS_MAX, wall_seconds_of
from asterism.access.shared_access import Policy, SasGrant, check_shared_access, is_shared_access
from asterism.access.shared_key import check_shared_key, is_shared_key, signed_account
from asterism.apis.table import headers
from asterism.apis.table.accounts import Account, Address
from asterism.apis.table.context import Context
from asterism.apis.table.errors import Refusal, not_authenticated
from asterism.apis.table.resources.access_policies import signing_policies
from asterism.apis.transports.http import Request
from asterism.models.tables.store import TableStore

_CHALLENGE: Final = (
    "www-authenticate",
    "Bearer authorization_uri=https://login.microsoftonline.com/common/oauth2/authorize "
    "resource_id=https://storage.azure.com",
)
# Longer paths name entities, and rarely come twice in a second.
_CHECKED_PATH_CHARACTERS_MAX: Final = 256


async def authenticate(
    context: Context, request: Request, account: Account, address: Address, query: dict[str, str]
) -> SasGrant | None:
    """Return the grant of a shared access signature, or None if the sender may do everything; refuse other senders."""
    authorization = request.headers.get(headers.AUTHORIZATION)
    if authorization is None:
        if is_shared_access(query):
            return await _check_shared_access(context, request, account, query)
        raise Refusal(
            401,
            "NoAuthenticationInformation",
            "Server failed to authenticate the request. Please refer to the information in the www-authenticate "
            "header.",
            is_xml=True,
            more_headers=[_CHALLENGE],
        )
    if is_shared_key(authorization):
        _check_shared_key(context, request, account, address, query, authorization)
    elif authorization.startswith("Bearer "):
        _check_bearer(context, request, account, authorization)
    else:
        raise Refusal(
            400,
            "InvalidAuthenticationInfo",
            "Authentication information is not given in the correct format. Check the value of Authorization header.",
            is_xml=True,
        )
    return None


def _check_shared_key(
    context: Context, request: Request, account: Account, address: Address, query: dict[str, str], authorization: str
) -> None:
    given = request.headers
    date = given.get(headers.SIGNED_DATE) or given.get(headers.DATE) or ""
    _check_date(date, context.clock.date_seconds())
    content_md5, content_type, comp = given.get("content-md5"), given.get("content-type"), query.get("comp")
    signed = (authorization, request.method, content_md5, content_type, date, request.authority, request.path, comp)
    if signed in account.checked:
        return
    name = signed_account(authorization)
    if name.removesuffix("-secondary") != account.name or not check_shared_key(
        account.keys,
        authorization=authorization,
        verb=request.method,
        content_md5=content_md5 or "",
        content_type=content_type or "",
        date=date,
        account=name,
        paths=address.signed_paths,
        comp=comp,
    ):
        raise not_authenticated()
    if len(request.path) <= _CHECKED_PATH_CHARACTERS_MAX:
        account.checked.remember(signed, None)


def _check_date(date: str, now_wall_seconds: float) -> None:
    signed_wall_seconds = wall_seconds_of(date)
    if signed_wall_seconds is None or abs(now_wall_seconds - signed_wall_seconds) > DATE_SKEW_SECONDS_MAX:
        raise not_authenticated("Request date header too old or missing.")


async def _check_shared_access(context: Context, request: Request, account: Account, query: dict[str, str]) -> SasGrant:
    policies = await _policies(context.store, account.name, query) if query.keys() >= {"si", "tn"} else {}
    return check_shared_access(
        account.keys,
        query,
        account=account.name,
        policies=policies,
        scheme=request.scheme,
        client_address=request.client_address.rpartition(":")[0].strip("[]"),
        now_wall_seconds=context.clock.wall_seconds(),
    )


async def _policies(store: TableStore, account: str, query: dict[str, str]) -> Mapping[str, Policy]:
    found = await signing_policies(store, account, query["tn"])
    if query["si"] in found or not store.is_shared:
        return found
    # Another process may have created the table a moment ago.
    await store.catch_up()
    return await signing_policies(store, account, query["tn"])


def _check_bearer(context: Context, request: Request, account: Account, authorization: str) -> None:
    if request.scheme != "https":
        raise not_authenticated("Bearer tokens are accepted over https only.")
    check_bearer_token(
        account.keys,
        authorization,
        account=account.name,
        unsigned_allowed=context.unsigned_tokens,
        now_wall_seconds=context.clock.wall_seconds(),
    )
