"""Authentication for tables, queues and blobs: a signature with the account's key, a shared access signature, a bearer
token, or no credentials at all."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final

from asterism.access.bearer_token import TokenHolder, check_bearer_token
from asterism.access.http_dates import DATE_SKEW_SECONDS_MAX, wall_seconds_of
from asterism.access.sas_grants import Policy, SasGrant
from asterism.access.shared_access import check_shared_access, is_shared_access
from asterism.access.shared_key import check_shared_key, is_shared_key, signed_account
from asterism.access.shared_key_headers import check_signed_headers
from asterism.apis.storage import headers
from asterism.apis.storage.accounts import Account
from asterism.apis.storage.address import SECONDARY_SUFFIX, Address, ServiceName
from asterism.apis.storage.refusals import invalid_token, malformed_credentials, no_credentials, not_authenticated
from asterism.apis.transports.http import Request
from asterism.clock import Clock
from asterism.errors import Unauthorized

# Longer paths name entities, and rarely come twice in a second.
_CHECKED_PATH_CHARACTERS_MAX: Final = 256
_BEARER: Final = "Bearer "


@dataclass(frozen=True, slots=True)
class Sender:
    """The sender of a request, whose credentials are valid."""

    # The grant of a shared access signature; None for a sender with a key of the account or a token, who may do
    # everything, and for one without credentials.
    grant: SasGrant | None = None
    is_anonymous: bool = False
    # From a bearer token.
    holder: TokenHolder | None = None


OWNER: Final = Sender()
ANONYMOUS: Final = Sender(is_anonymous=True)


@dataclass(frozen=True, slots=True)
class Authenticator:
    """Checks the credentials of the requests to one service."""

    service: ServiceName
    clock: Clock
    # Accepts tokens without a signature; see access/bearer_token.py.
    unsigned_tokens: bool = False

    async def authenticate(
        self,
        request: Request,
        account: Account,
        address: Address,
        query: Mapping[str, str],
        *,
        path: str,
        policies: Callable[[], Awaitable[Mapping[str, Policy]]],
    ) -> Sender:
        """Return the sender; refuse credentials that are not valid, and for tables and queues a request without any.

        `path`: the resource as `check_shared_access` takes it. `policies`: finds the policies stored with it, and is
        called for signatures that name a policy only.
        """
        authorization = request.headers.get(headers.AUTHORIZATION)
        if authorization is None:
            if is_shared_access(query):
                grant = await self._check_shared_access(request, account, query, path, policies)
                if grant.delegated_object_id:
                    raise not_authenticated("The signature needs the bearer token of its user besides.")
                return Sender(grant)
            if self.service != "blob":
                raise no_credentials()
            return ANONYMOUS
        if is_shared_key(authorization):
            self._check_shared_key(request, account, address, query, authorization)
            return OWNER
        if not authorization.startswith(_BEARER):
            raise malformed_credentials()
        holder = self._check_bearer(request, account, authorization)
        if is_shared_access(query) and "sduoid" in query:
            grant = await self._check_shared_access(request, account, query, path, policies)
            if grant.delegated_object_id and grant.delegated_object_id != holder.object_id:
                raise not_authenticated("The signature is for another user.")
            return Sender(grant, holder=holder)
        return Sender(holder=holder)

    def _check_shared_key(
        self, request: Request, account: Account, address: Address, query: Mapping[str, str], authorization: str
    ) -> None:
        given = request.headers
        date = given.get(headers.SIGNED_DATE) or given.get(headers.DATE) or ""
        self._check_date(date)
        name = signed_account(authorization)
        if name.removesuffix(SECONDARY_SUFFIX) != account.name:
            raise not_authenticated()
        if self.service == "table":
            self._check_table_key(request, account, address, query, authorization, date)
        elif not check_signed_headers(
            account.keys,
            authorization=authorization,
            verb=request.method,
            headers=given,
            account=name,
            paths=address.signed_paths,
            query_string=request.query_string,
        ):
            raise not_authenticated()

    def _check_table_key(
        self,
        request: Request,
        account: Account,
        address: Address,
        query: Mapping[str, str],
        authorization: str,
        date: str,
    ) -> None:
        given = request.headers
        content_md5, content_type, comp = given.get("content-md5"), given.get("content-type"), query.get("comp")
        signed = (authorization, request.method, content_md5, content_type, date, request.authority, request.path, comp)
        if signed in account.checked:
            return
        if not check_shared_key(
            account.keys,
            authorization=authorization,
            verb=request.method,
            content_md5=content_md5 or "",
            content_type=content_type or "",
            date=date,
            account=signed_account(authorization),
            paths=address.signed_paths,
            comp=comp,
        ):
            raise not_authenticated()
        if len(request.path) <= _CHECKED_PATH_CHARACTERS_MAX:
            account.checked.remember(signed, None)

    def _check_date(self, date: str) -> None:
        signed_wall_seconds = wall_seconds_of(date)
        now = self.clock.date_seconds()
        if signed_wall_seconds is None or abs(now - signed_wall_seconds) > DATE_SKEW_SECONDS_MAX:
            raise not_authenticated("Request date header too old or missing.")

    async def _check_shared_access(
        self,
        request: Request,
        account: Account,
        query: Mapping[str, str],
        path: str,
        policies: Callable[[], Awaitable[Mapping[str, Policy]]],
    ) -> SasGrant:
        return check_shared_access(
            account.keys,
            query,
            service=self.service,
            account=account.name,
            path=path,
            headers=request.headers,
            policies=await policies() if "si" in query else {},
            scheme=request.scheme,
            client_address=request.client_address.rpartition(":")[0].strip("[]"),
            now_wall_seconds=self.clock.wall_seconds(),
        )

    def _check_bearer(self, request: Request, account: Account, authorization: str) -> TokenHolder:
        if request.scheme != "https":
            raise not_authenticated("Bearer tokens are accepted over https only.")
        try:
            return check_bearer_token(
                account.keys,
                authorization,
                account=account.name,
                unsigned_allowed=self.unsigned_tokens,
                now_wall_seconds=self.clock.wall_seconds(),
            )
        except Unauthorized as error:
            if self.service == "table":
                raise
            raise invalid_token(error.sentence) from None
