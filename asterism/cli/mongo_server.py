"""The MongoDB port of a running server, as commands reach it: with the driver, and the key of the account."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from asterism.cli.failure import CommandFailed
from asterism.cli.server_address import ServerAddress
from asterism.values.bson.codec import OPTIONS

if TYPE_CHECKING:
    from pymongo import MongoClient
    from pymongo.database import Database

    from asterism.cli.client import AdminClient

SELECTION_MILLISECONDS = 10_000
NO_PORT = "the server has no MongoDB port; start it with --apis nosql,mongo, or give another address with --mongodb"


class MongoServer:
    """A connection, opened when it is first needed; every failure of it is a CommandFailed."""

    def __init__(
        self, admin: AdminClient, endpoint: str, key: str, address: str | None, *, insecure: bool = False
    ) -> None:
        """`address` is a connection string; without it, the port is the server's own, on the host of `endpoint`."""
        self._admin = admin
        self._server = ServerAddress.of(endpoint, key, insecure=insecure)
        self._key = key
        self._address = address
        self._client: MongoClient[dict[str, Any]] | None = None

    def database(self, name: str) -> Database[dict[str, Any]]:
        if self._client is None:
            self._client = self._connect()
        return self._client.get_database(name, codec_options=OPTIONS)

    def close(self) -> None:
        if self._client is not None:
            self._client.close()

    def _connect(self) -> MongoClient[dict[str, Any]]:
        from pymongo import MongoClient
        from pymongo.errors import PyMongoError

        options: dict[str, Any] = {"serverSelectionTimeoutMS": SELECTION_MILLISECONDS, "retryWrites": True}
        try:
            if self._address is not None:
                return MongoClient(self._address, **options)
            facts = self._admin.get("server")
            place = facts.get("mongodb")
            if place is None:
                raise CommandFailed(NO_PORT)
            server = self._server
            if place["is_encrypted"] or server.scheme == "https":
                # A server on this machine has a self-signed certificate.
                options |= {"tls": True, "tlsAllowInvalidCertificates": server.insecure or server.is_local}
            return MongoClient(
                server.host,
                place["port"],
                directConnection=True,
                username=facts["account"],
                password=self._key,
                **options,
            )
        except PyMongoError as error:
            raise CommandFailed(f"the MongoDB port cannot be used: {error}") from None
