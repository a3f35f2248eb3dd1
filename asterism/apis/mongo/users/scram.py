"""SCRAM (RFC 5802, RFC 7677) without a socket: credentials from passwords, and the server's side of a login."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from asterism.apis.mongo.users.sasl_text import ProhibitedText, prepare

SHA_1: Final = "SCRAM-SHA-1"
SHA_256: Final = "SCRAM-SHA-256"
MECHANISMS: Final = (SHA_1, SHA_256)
_HASHES: Final = {SHA_256: "sha256", SHA_1: "sha1"}
# As MongoDB's.
ITERATIONS: Final = {SHA_256: 15_000, SHA_1: 10_000}
SALT_BYTES: Final = {SHA_256: 28, SHA_1: 16}


class LoginFailed(Exception):
    """The messages are not those of a client that knows the password."""


@dataclass(frozen=True, slots=True)
class Credentials:
    """Keys that check a password without containing it."""

    mechanism: str
    iterations: int
    salt: bytes
    stored_key: bytes
    server_key: bytes


def password_text(mechanism: str, user: str, password: str, *, is_digested: bool = False) -> bytes:
    """Return the bytes that keys are derived from; ProhibitedText if the password cannot be prepared."""
    if mechanism == SHA_256:
        return prepare(password).encode()
    digest = password if is_digested else hashlib.md5(f"{user}:mongo:{password}".encode()).hexdigest()
    return digest.encode()


def derive(mechanism: str, secret: bytes, salt: bytes, iterations: int | None = None) -> Credentials:
    """Return the credentials of a secret. Takes milliseconds, on purpose: call it in a thread."""
    digest = _HASHES[mechanism]
    rounds = ITERATIONS[mechanism] if iterations is None else iterations
    salted = hashlib.pbkdf2_hmac(digest, secret, salt, rounds)
    client_key = hmac.digest(salted, b"Client Key", digest)
    stored_key = hashlib.new(digest, client_key).digest()
    return Credentials(mechanism, rounds, salt, stored_key, hmac.digest(salted, b"Server Key", digest))


def is_password(credentials: Credentials, user: str, password: str) -> bool:
    """Check a password that was sent as it is. Takes milliseconds, as `derive`."""
    try:
        secret = password_text(credentials.mechanism, user, password)
    except ProhibitedText:
        return False
    found = derive(credentials.mechanism, secret, credentials.salt, credentials.iterations)
    return hmac.compare_digest(found.stored_key, credentials.stored_key)


@dataclass(frozen=True, slots=True)
class FirstMessage:
    """The first message of a client."""

    user: str
    nonce: str
    bare: str
    # The header again, as the client's last message must have it.
    binding: str


def read_first(payload: bytes) -> FirstMessage:
    try:
        text = payload.decode()
    except UnicodeDecodeError:
        raise LoginFailed from None
    header, _, bare = text.partition(",,")
    fields = _fields(bare)
    # `p`: binding to the TLS channel, which is not offered.
    if header not in ("n", "y") or not fields.get("n") or not fields.get("r"):
        raise LoginFailed
    user = fields["n"].replace("=2C", ",").replace("=3D", "=")
    return FirstMessage(user, fields["r"], bare, base64.b64encode(f"{header},,".encode()).decode())


class Conversation:
    """A login whose first message was answered. `candidates`: the keys of any of them will do; none: no such user."""

    __slots__ = ("_candidates", "_first", "_nonce", "mechanism", "server_first")

    def __init__(
        self, first: FirstMessage, shown: Credentials, candidates: Sequence[Credentials], *, nonce: bytes
    ) -> None:
        """`shown` has the salt and the iterations that the client is told."""
        self._first = first
        self._candidates = candidates
        self.mechanism = shown.mechanism
        self._nonce = first.nonce + base64.b64encode(nonce).decode()
        self.server_first = f"r={self._nonce},s={base64.b64encode(shown.salt).decode()},i={shown.iterations}"

    def finish(self, payload: bytes) -> bytes:
        """Check the client's proof and return the server's; LoginFailed."""
        try:
            without_proof, found, proof_text = payload.decode().rpartition(",p=")
            proof = base64.b64decode(proof_text, validate=True)
        except ValueError:
            raise LoginFailed from None
        fields = _fields(without_proof)
        if not found or fields.get("r") != self._nonce or fields.get("c") != self._first.binding:
            raise LoginFailed
        digest = _HASHES[self.mechanism]
        message = f"{self._first.bare},{self.server_first},{without_proof}".encode()
        nobody = Credentials(self.mechanism, 0, b"", bytes(hashlib.new(digest).digest_size), b"")
        server_key: bytes | None = None
        # All are tried, and an unknown user costs as much as a known one, so that the time says nothing.
        for candidate in self._candidates or (nobody,):
            if _proves(proof, candidate.stored_key, message, digest) and candidate.server_key:
                server_key = candidate.server_key
        if server_key is None:
            raise LoginFailed
        return b"v=" + base64.b64encode(hmac.digest(server_key, message, digest))


def _proves(proof: bytes, stored_key: bytes, message: bytes, digest: str) -> bool:
    signature = hmac.digest(stored_key, message, digest)
    if len(proof) != len(signature):
        return False
    client_key = bytes(left ^ right for left, right in zip(proof, signature, strict=True))
    return hmac.compare_digest(hashlib.new(digest, client_key).digest(), stored_key)


def _fields(text: str) -> dict[str, str]:
    pairs = (part.partition("=") for part in text.split(","))
    return {name: value for name, _, value in pairs}
