"""Logins: SCRAM-SHA-256, SCRAM-SHA-1 and PLAIN (over TLS) with the account's name and key, or as a user of a database.

While the key is the public one of the emulator, clients on this machine need no login.
"""

from __future__ import annotations

import asyncio
import base64
import hmac
import ipaddress
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from asterism.apis.mongo.users import scram
from asterism.apis.mongo.users.credentials import KeyCredentials, read_stored
from asterism.apis.mongo.users.directory import UserDirectory
from asterism.apis.mongo.users.rights import role_id
from asterism.apis.mongo.users.scram import Conversation, LoginFailed, is_password, read_first
from asterism.languages.mongo.failure import MongoFailure
from asterism.values.bson.types import Document

if TYPE_CHECKING:
    from asterism.apis.mongo.connection import Connection

PLAIN: Final = "PLAIN"
_EXTERNAL: Final = "$external"
_NONCE_BYTES: Final = 18
_CONVERSATION: Final = 1


@dataclass(frozen=True, slots=True)
class _Login:
    """The sender of a login: the account itself, or one of its users."""

    user: str
    database: str
    account: str
    is_owner: bool


@dataclass(slots=True)
class LoginUnderWay:
    login: _Login
    conversation: Conversation
    # True if the client spares itself the last, empty exchange.
    skips_empty: bool
    is_done: bool = False


def failed() -> MongoFailure:
    # The same for an unknown user as for a wrong password.
    return MongoFailure(18, "Authentication failed.")


class Authenticator:
    """Checks logins. `keys_of` returns the keys of an account as text, none if there is no such account."""

    def __init__(
        self,
        keys_of: Callable[[str], list[str]],
        default_account: str,
        directory: UserDirectory,
        random_bytes: Callable[[int], bytes],
        *,
        key_is_public: bool,
    ) -> None:
        self._keys_of = keys_of
        self._default_account = default_account
        self._random_bytes = random_bytes
        self._key_is_public = key_is_public
        self._credentials = KeyCredentials(lambda: keys_of(default_account)[0])
        self.directory = directory

    def is_open_to(self, connection: Connection) -> bool:
        """True if a connection needs no login."""
        return self._key_is_public and _is_loopback(connection.peer_address)

    def greet(self, connection: Connection) -> None:
        """Begin, or begin again, with the rights that a connection has before it logs in."""
        connection.conversation = None
        connection.user = connection.user_name = ""
        connection.rights = None
        connection.is_owner = self.is_open_to(connection)
        connection.account = self._default_account if connection.is_owner else ""

    # --- commands ---------------------------------------------------------------------------------------------------

    async def mechanisms(self, connection: Connection, qualified: str) -> list[str]:
        """List the mechanisms of a user, given as `database.name`. Unknown users have those of any other."""
        offered = [scram.SHA_1, scram.SHA_256]
        database, _, name = qualified.partition(".")
        login = self._login(connection, name, database)
        if not login.is_owner:
            directory = await self.directory.load(login.account)
            user = directory.users.get(role_id(name, database))
            if user is not None:
                offered = [mechanism for mechanism in offered if mechanism in user.get("credentials", {})]
        return [*offered, *((PLAIN,) if connection.is_tls else ())]

    async def start(self, connection: Connection, body: Document, database: Any) -> Document:
        """Answer the first message of a login."""
        connection.conversation = None
        mechanism, data = body.get("mechanism"), _payload(body)
        if type(mechanism) is not str:
            raise MongoFailure(14, "BSON field 'saslStart.mechanism' is the wrong type, expected type 'string'")
        source = database if type(database) is str else "admin"
        if mechanism == PLAIN:
            return await self._plain(connection, data, source)
        if mechanism not in scram.MECHANISMS:
            raise MongoFailure(334, f"Received authentication for mechanism {mechanism} which is not enabled")
        try:
            first = read_first(data)
        except LoginFailed:
            raise failed() from None
        login = self._login(connection, first.user, source)
        shown = self._credentials.blank(mechanism, first.user)
        if login.is_owner:
            candidates = await self._credentials.derive(mechanism, first.user, self._keys_of(login.account))
        else:
            directory = await self.directory.load(login.account)
            user = directory.users.get(role_id(login.user, source))
            stored = None if user is None else read_stored(mechanism, user)
            if user is not None and stored is None:
                # Drivers that have begun with the wrong mechanism must see at once that they have.
                raise failed()
            candidates = [] if stored is None else [stored]
            shown = stored or shown
        conversation = Conversation(first, shown, candidates, nonce=self._random_bytes(_NONCE_BYTES))
        options = body.get("options")
        skips = isinstance(options, dict) and options.get("skipEmptyExchange") is True
        connection.conversation = LoginUnderWay(login, conversation, skips)
        return _sasl_answer(conversation.server_first.encode(), done=False)

    async def go_on(self, connection: Connection, body: Document) -> Document:
        """Answer a later message of a login."""
        under_way = connection.conversation
        connection.conversation = None
        if not isinstance(under_way, LoginUnderWay):
            raise MongoFailure(17, "No SASL session state found")
        number = body.get("conversationId")
        if number != _CONVERSATION or isinstance(number, bool):
            raise MongoFailure(17, "sasl: Mismatched conversation id")
        data = _payload(body)
        if under_way.is_done:
            await self._log_in(connection, under_way.login)
            return _sasl_answer(b"", done=True)
        try:
            proof = under_way.conversation.finish(data)
        except LoginFailed:
            raise failed() from None
        if under_way.skips_empty:
            await self._log_in(connection, under_way.login)
        else:
            under_way.is_done = True
            connection.conversation = under_way
        return _sasl_answer(proof, done=under_way.skips_empty)

    async def _plain(self, connection: Connection, data: bytes, source: str) -> Document:
        if not connection.is_tls:
            raise MongoFailure(18, "PLAIN sends the password as it is; it is only accepted over TLS.")
        try:
            _, name, password = data.decode().split("\x00")
        except ValueError:
            raise failed() from None
        database = "admin" if source == _EXTERNAL else source
        login = self._login(connection, name, database)
        if login.is_owner:
            # All are compared, so that the time does not tell which key it was.
            keys = self._keys_of(login.account)
            is_right = True in [hmac.compare_digest(key.encode(), password.encode()) for key in keys]
        else:
            directory = await self.directory.load(login.account)
            stored = read_stored(scram.SHA_256, directory.users.get(role_id(name, database), {}))
            checked = stored or self._credentials.blank(scram.SHA_256, name)
            is_right = await asyncio.to_thread(is_password, checked, name, password)
        if not is_right:
            raise failed()
        await self._log_in(connection, login)
        return _sasl_answer(b"", done=True)

    # --- users and accounts -----------------------------------------------------------------------------------------

    def _login(self, connection: Connection, name: str, database: str) -> _Login:
        if name == "localhost":
            return _Login(name, database, self._default_account, True)
        if self._keys_of(name):
            return _Login(name, database, name, True)
        # Users of another account come to the host of its name.
        host = (connection.server_name or "").partition(".")[0]
        account = host if host and self._keys_of(host) and host != "localhost" else self._default_account
        return _Login(name, database, account, False)

    async def _log_in(self, connection: Connection, login: _Login) -> None:
        rights = None
        if not login.is_owner:
            directory = await self.directory.current(login.account)
            rights = directory.rights(role_id(login.user, login.database))
            if rights is None:
                raise failed()
        connection.rights = rights
        connection.is_owner = login.is_owner
        connection.account = login.account
        connection.user_name = login.user
        connection.user_database = login.database
        connection.user = login.user if login.is_owner else role_id(login.user, login.database)


def _payload(body: Document) -> bytes:
    payload = body.get("payload")
    if isinstance(payload, bytes):
        return payload
    if isinstance(payload, str):
        try:
            return base64.b64decode(payload, validate=True)
        except ValueError:
            raise failed() from None
    raise MongoFailure(14, "BSON field 'payload' is the wrong type, expected type 'binData'")


def _sasl_answer(payload: bytes, *, done: bool) -> Document:
    return {"conversationId": _CONVERSATION, "done": done, "payload": payload}


def _is_loopback(peer: str) -> bool:
    host = peer.rpartition(":")[0].strip("[]")
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return False
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return (mapped or address).is_loopback
