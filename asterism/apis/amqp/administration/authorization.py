"""Checks of the tokens of administration requests: signatures of shared access rules, and bearer tokens."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from asterism.access.messaging_token import (
    Resource,
    check_directory_token,
    is_shared_access,
    parse_shared_access,
)
from asterism.errors import Unauthorized
from asterism.models.namespaces.authorization import MANAGE

if TYPE_CHECKING:
    from asterism.clock import Clock
    from asterism.models.namespaces.authorization import AuthorizationRules

# The audience of tokens for the resource manager.
RESOURCE_MANAGER: Final = Resource("management.azure.com", "")


class TokenChecker:
    """Checks that a request may administer a resource: everything needs the right Manage, as on the service."""

    def __init__(self, rules: AuthorizationRules, clock: Clock, takes_directory_tokens: Callable[[str], bool]) -> None:
        """`takes_directory_tokens` tells whether a namespace takes tokens whose signature cannot be checked."""
        self._rules = rules
        self._clock = clock
        self._takes_directory_tokens = takes_directory_tokens

    async def check(self, authorization: str | None, *, namespace: str, host: str, path: str, is_manager: bool) -> None:
        """Refuse a request (Unauthorized) unless its token permits to manage a path below a host. `is_manager`: the
        request has the form of the resource manager."""
        if not authorization:
            raise Unauthorized(
                reason="The request has no Authorization header. Send a shared access signature or a bearer token."
            )
        resource = Resource(host.lower(), path.strip("/").lower())
        if is_shared_access(authorization):
            await self._check_signature(authorization, namespace, resource)
            return
        if not self._takes_directory_tokens(namespace):
            raise Unauthorized(
                reason="Bearer tokens are signed by a directory, which this server does not have. Use a shared access "
                "signature, or start the server with --unsigned-tokens for tests."
            )
        audience = RESOURCE_MANAGER if is_manager else resource
        check_directory_token(authorization, audience=audience, now_wall_seconds=self._clock.wall_seconds())

    async def _check_signature(self, authorization: str, namespace: str, resource: Resource) -> None:
        token = parse_shared_access(authorization)
        if not token.resource.covers(resource):
            raise Unauthorized(reason="The shared access signature is for another address.")
        rule = (await self._rules.applying_to(namespace, resource.path)).get(token.rule_name)
        if rule is None:
            raise Unauthorized(reason=f"There is no shared access rule '{token.rule_name[:64]}' for this address.")
        token.check(rule.keys, now_wall_seconds=self._clock.wall_seconds())
        if MANAGE not in rule.rights:
            raise Unauthorized(reason=f"The shared access rule '{rule.name}' does not have the right {MANAGE}.")
