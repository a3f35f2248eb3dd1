"""Logins: SCRAM-SHA-256, SCRAM-SHA-1 and PLAIN (over TLS) with the account's name and key, or as a user of a database.

While the key is the public one of the emulator, and only this machine can connect, no login is needed.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

from asterism.apis.mongo.call import Call
from asterism.apis.mongo.connection import Connection
from asterism.languages.mongo.failure import MongoFailure
from asterism.values.bson.types import Document

_ITERATIONS: Final = {"SCRAM-SHA-256": 15_000, "SCRAM-SHA-1": 10_000}
_HASHES: Final = {"SCRAM-SHA-256": "sha256", "SCRAM-SHA-1": "sha1"}
_SALT_LABEL = b"asterism mongo salt 1"


@dataclass(slots=True)
class _Conversation:
    mechanism: str
    user: str
    nonce: str
    first_bare: str
    server_first: str
    secrets: list[bytes]
    salt: bytes
    is_done: bool = False


def failed() -> MongoFailure:
    return MongoFailure(18, "Authentication failed.")


class Authenticator:
    """Checks logins against the keys of accounts. `keys_of` returns the keys of an account as text, none if unknown."""

    def __init__(
        self,
        keys_of: Callable[[str], list[str]],
        default_account: str,
        random_bytes: Callable[[int], bytes],
        *,
        is_open: bool,
    ) -> None:
        self._keys_of = keys_of
        self._default_account = default_account
        self._random_bytes = random_bytes
        self.is_open = is_open
        self._salted: dict[tuple[str, str, str], bytes] = {}

    def greet(self, connection: Connection) -> None:
        """Let a new connection in without a login where none is needed."""
        if self.is_open:
            connection.account = self._default_account

    def mechanisms(self, connection: Connection) -> list[str]:
        return ["SCRAM-SHA-1", "SCRAM-SHA-256", *(("PLAIN",) if connection.is_tls else ())]

    async def start(self, connection: Connection, body: Document) -> Document:
        """Answer the first message of a login."""
        mechanism, payload = body.get("mechanism"), body.get("payload")
        if not isinstance(payload, (bytes, str)):
            raise MongoFailure(14, "BSON field 'saslStart.payload' must be binary data")
        data = payload if isinstance(payload, bytes) else base64.b64decode(payload)
        if mechanism == "PLAIN":
            return self._plain(connection, data)
        if mechanism not in _HASHES:
            raise MongoFailure(334, f"Received authentication for mechanism {mechanism} which is not enabled")
        text = data.decode("utf-8", "replace")
        header, _, bare = text.partition(",,")
        fields = _fields(bare)
        if header not in ("n", "y") or "n" not in fields or "r" not in fields:
            raise failed()
        user = fields["n"].replace("=2C", ",").replace("=3D", "=")
        salt = hmac.digest(_SALT_LABEL, f"{mechanism}/{user}".encode(), "sha256")
        salt = salt[:16] if mechanism == "SCRAM-SHA-1" else salt[:28]
        nonce = fields["r"] + base64.b64encode(self._random_bytes(18)).decode()
        server_first = f"r={nonce},s={base64.b64encode(salt).decode()},i={_ITERATIONS[mechanism]}"
        secrets = [self._salted_password(mechanism, user, key, salt) for key in self._keys_of(user)]
        connection.conversation = _Conversation(mechanism, user, nonce, bare, server_first, secrets, salt)
        return {"conversationId": 1, "done": False, "payload": server_first.encode()}

    async def go_on(self, connection: Connection, body: Document) -> Document:
        """Answer a later message of a login."""
        conversation = connection.conversation
        payload = body.get("payload")
        if not isinstance(conversation, _Conversation) or not isinstance(payload, bytes):
            raise MongoFailure(17, "No SASL session state found")
        if conversation.is_done:
            connection.conversation = None
            return {"conversationId": 1, "done": True, "payload": b""}
        text = payload.decode("utf-8", "replace")
        without_proof, _, proof_text = text.rpartition(",p=")
        fields = _fields(without_proof)
        connection.conversation = None
        try:
            proof = base64.b64decode(proof_text, validate=True)
        except ValueError:
            raise failed() from None
        if fields.get("r") != conversation.nonce:
            raise failed()
        message = f"{conversation.first_bare},{conversation.server_first},{without_proof}".encode()
        digest = _HASHES[conversation.mechanism]
        # The work of an unknown user is that of a known one.
        candidates = conversation.secrets or [bytes(hashlib.new(digest).digest_size)]
        verified: bytes | None = None
        for salted in candidates:
            client_key = hmac.digest(salted, b"Client Key", digest)
            stored_key = hashlib.new(digest, client_key).digest()
            signature = hmac.digest(stored_key, message, digest)
            expected = bytes(left ^ right for left, right in zip(client_key, signature, strict=True))
            if hmac.compare_digest(expected, proof) and conversation.secrets:
                verified = hmac.digest(hmac.digest(salted, b"Server Key", digest), message, digest)
        if verified is None:
            raise failed()
        self._log_in(connection, conversation.user)
        conversation.is_done = True
        connection.conversation = conversation
        return {
            "conversationId": 1,
            "done": True,
            "payload": b"v=" + base64.b64encode(verified),
        }

    def _plain(self, connection: Connection, data: bytes) -> Document:
        if not connection.is_tls:
            raise MongoFailure(18, "PLAIN is only accepted over TLS")
        _, _, rest = data.partition(b"\x00")
        user, _, password = rest.partition(b"\x00")
        name = user.decode("utf-8", "replace")
        keys = self._keys_of(name)
        # All are compared, so that the time does not tell which one it is.
        if True not in [hmac.compare_digest(key.encode(), password) for key in keys]:
            raise failed()
        self._log_in(connection, name)
        return {"conversationId": 1, "done": True, "payload": b""}

    def _log_in(self, connection: Connection, user: str) -> None:
        connection.user = user
        connection.account = self._default_account if user == "localhost" else user

    def _salted_password(self, mechanism: str, user: str, key: str, salt: bytes) -> bytes:
        known = self._salted.get((mechanism, user, key))
        if known is None:
            digest = _HASHES[mechanism]
            password = key if digest == "sha256" else hashlib.md5(f"{user}:mongo:{key}".encode()).hexdigest()
            known = hashlib.pbkdf2_hmac(digest, password.encode(), salt, _ITERATIONS[mechanism])
            self._salted[mechanism, user, key] = known
        return known


def _fields(text: str) -> dict[str, str]:
    pairs = (part.partition("=") for part in text.split(","))
    return {name: value for name, _, value in pairs}


async def sasl_start(call: Call) -> Document:
    return await call.context.authenticator.start(call.connection, call.body)


async def sasl_continue(call: Call) -> Document:
    return await call.context.authenticator.go_on(call.connection, call.body)


async def logout(call: Call) -> Document:
    call.connection.user = ""
    call.connection.account = ""
    call.context.authenticator.greet(call.connection)
    return {}


async def connection_status(call: Call) -> Document:
    user = call.connection.user
    users: list[Any] = [{"user": user, "db": "admin"}] if user else []
    roles = [{"role": "root", "db": "admin"}] if user else []
    info: Document = {"authenticatedUsers": users, "authenticatedUserRoles": roles}
    if call.body.get("showPrivileges"):
        info["authenticatedUserPrivileges"] = []
    return {"authInfo": info}
