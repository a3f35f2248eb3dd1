"""The node `$cbs`, where clients put tokens: each gives its connection rights for some time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from asterism.access.messaging_token import (
    Resource,
    check_directory_token,
    is_shared_access,
    parse_shared_access,
    resource_of,
)
from asterism.apis.amqp.engine.tokens import ALL_RIGHTS, TokenGrant
from asterism.apis.amqp.nodes import NOT_FOUND, AmqpError, NodeReply
from asterism.errors import AsterismError, Category, Unauthorized
from asterism.values.amqp.message import Message, text_of
from asterism.values.amqp.types import Int, InvalidAmqp

if TYPE_CHECKING:
    from asterism.apis.amqp.engine.connection import Connection

CBS_ADDRESS: Final = "$cbs"
_PUT_TOKEN: Final = "put-token"
_AUTH_FAILED: Final = "com.microsoft:auth-failed"


class TokenNode:
    """Answers requests to `$cbs` of one connection."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    async def answer(self, request: Message) -> NodeReply:
        counters = self._connection.counters
        try:
            await self._put(request)
        except InvalidAmqp as error:
            counters.tokens_refused += 1
            return _reply(400, f"The request is not valid: {error}.", "amqp:decode-error")
        except AmqpError as error:
            counters.tokens_refused += 1
            return _reply(404 if error.condition == NOT_FOUND else 403, error.description, error.condition)
        except AsterismError as error:
            counters.tokens_refused += 1
            if error.category is Category.UNAUTHENTICATED:
                return _reply(401, error.sentence, _AUTH_FAILED)
            failure = self._connection.failure_of(error)
            return _reply(500, failure.description, failure.condition)
        except Exception as error:
            failure = self._connection.failure_of(error)
            return _reply(500, failure.description, failure.condition)
        counters.tokens_accepted += 1
        return _reply(202, "Accepted", None)

    async def _put(self, request: Message) -> None:
        connection = self._connection
        properties = request.application_properties
        if text_of(properties.get("operation")) != _PUT_TOKEN:
            raise AmqpError("amqp:not-implemented", "The only operation of $cbs is put-token.")
        name, token = text_of(properties.get("name")), text_of(request.body)
        if name is None or token is None:
            raise Unauthorized(reason="The request lacks the name of an audience, or a token.")
        if len(name) > connection.settings.audience_characters_max:
            raise Unauthorized(reason="The name of the audience is longer than that of any entity.")
        try:
            audience = resource_of(name)
        except ValueError:
            raise Unauthorized(reason="The name of the audience is not a URI of messaging.") from None
        now = connection.clock.date_seconds()
        grant = await self._grant_of(token, audience, now_wall_seconds=now)
        if not await connection.host.check_audience(connection.peer.namespace, audience.path):
            raise AmqpError(NOT_FOUND, f"The messaging entity '{name}' could not be found.")
        connection.peer.tokens.put(name, grant, now_wall_seconds=now)

    async def _grant_of(self, text: str, audience: Resource, *, now_wall_seconds: float) -> TokenGrant:
        """Return the rights of a token, by its content; Unauthorized if it gives none."""
        if not is_shared_access(text):
            connection = self._connection
            if not connection.host.takes_directory_tokens(connection.peer.namespace):
                raise Unauthorized(
                    reason="Tokens of a directory cannot be checked here. Use a shared access signature, or start the "
                    "server with --unsigned-tokens for tests."
                )
            expires = check_directory_token(text, audience=audience, now_wall_seconds=now_wall_seconds)
            return TokenGrant("", ALL_RIGHTS, expires)
        token = parse_shared_access(text)
        if not token.resource.covers(audience):
            raise Unauthorized(reason="The shared access signature is for another resource (sr).")
        # The rules of the signed resource, not of the audience: a rule of a queue cannot sign for the namespace.
        connection = self._connection
        rules = await connection.host.keys_for(connection.peer.namespace, token.resource.path)
        keys, rights = rules.get(token.rule_name, ((), frozenset()))
        token.check(keys, now_wall_seconds=now_wall_seconds)
        return TokenGrant(token.resource.path, rights, token.expires_wall_seconds)


def _reply(status: int, description: str, condition: str | None) -> NodeReply:
    properties: dict[str, Any] = {"status-code": Int(status), "status-description": description}
    if condition is not None:
        properties["error-condition"] = condition
    return NodeReply(properties)
