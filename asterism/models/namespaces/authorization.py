"""Shared access rules: names with rights and two keys, of a namespace or of one of its entities.

The rules of an entity stand in its description. Those of a namespace are a small document, beside the rule that every
namespace has from its account, with the account's keys.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

from asterism.errors import MalformedRequest, ResourceNotFound, TooMuchContention
from asterism.models.namespaces.store import EntityRecord, NamespaceStore

MANAGE: Final = "Manage"
SEND: Final = "Send"
LISTEN: Final = "Listen"
RIGHTS: Final = (MANAGE, SEND, LISTEN)
ROOT_RULE: Final = "RootManageSharedAccessKey"
# The service's limit, for a namespace and for each entity.
RULES_MAX: Final = 12
_NAME_CHARACTERS_MAX: Final = 256
_DOCUMENT: Final = "authorization-rules"
# Another process may have changed the rules each time.
_ATTEMPTS_MAX: Final = 10
# Models have their own spelling of the property of a description.
_PROPERTIES: Final = ("authorization_rules", "authorizationRules")


@dataclass(frozen=True, slots=True)
class AuthorizationRule:
    """A name that tokens are signed under, and what its keys permit. Times are milliseconds since 1970."""

    name: str
    rights: frozenset[str]
    primary_key: str = field(repr=False)
    secondary_key: str = field(repr=False)
    created_ms: int = 0
    updated_ms: int = 0

    @property
    def keys(self) -> tuple[str, ...]:
        """The texts that tokens may be signed with."""
        return tuple(key for key in (self.primary_key, self.secondary_key) if key)

    @property
    def ordered_rights(self) -> list[str]:
        return [right for right in RIGHTS if right in self.rights]

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "rights": self.ordered_rights,
            "primary": self.primary_key,
            "secondary": self.secondary_key,
            "created": self.created_ms,
            "updated": self.updated_ms,
        }

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> AuthorizationRule:
        return cls(
            stored["name"],
            frozenset(stored["rights"]),
            stored["primary"],
            stored["secondary"],
            stored["created"],
            stored["updated"],
        )


def checked_rule(rule: AuthorizationRule) -> AuthorizationRule:
    """Return the rule with the rights that it implies; MalformedRequest unless it has a name, rights and a key."""
    if not rule.name or len(rule.name) > _NAME_CHARACTERS_MAX or "/" in rule.name:
        raise MalformedRequest(
            reason=f"The name of a shared access rule has 1 to {_NAME_CHARACTERS_MAX} characters, and no slash."
        )
    unknown = sorted(rule.rights - set(RIGHTS))
    if unknown or not rule.rights:
        raise MalformedRequest(reason=f"The rights of a shared access rule are some of {', '.join(RIGHTS)}.")
    if not rule.primary_key:
        raise MalformedRequest(reason="A shared access rule needs a key.")
    return replace(rule, rights=frozenset(RIGHTS)) if MANAGE in rule.rights else rule


def with_rule(rules: Iterable[AuthorizationRule], rule: AuthorizationRule) -> tuple[AuthorizationRule, ...]:
    """Return the rules with another one, or with one of the same name in place of the former."""
    former = {known.name.lower(): known for known in rules}
    known = former.get(rule.name.lower())
    if known is not None:
        rule = replace(rule, name=known.name, created_ms=known.created_ms)
    former[rule.name.lower()] = rule
    return checked_rules(tuple(former.values()))


def without_rule(rules: Iterable[AuthorizationRule], name: str) -> tuple[AuthorizationRule, ...]:
    """Return the rules without one; ResourceNotFound if no rule has the name."""
    given = tuple(rules)
    rest = tuple(rule for rule in given if rule.name.lower() != name.lower())
    if len(rest) == len(given):
        raise ResourceNotFound(kind="authorization rule", name=name)
    return rest


def checked_rules(rules: Sequence[AuthorizationRule]) -> tuple[AuthorizationRule, ...]:
    """Return all rules of a place, each checked; MalformedRequest if they are too many or two have a name."""
    if len(rules) > RULES_MAX:
        raise MalformedRequest(reason=f"There can be at most {RULES_MAX} shared access rules.")
    if len({rule.name.lower() for rule in rules}) != len(rules):
        raise MalformedRequest(reason="Two shared access rules have the same name.")
    return tuple(map(checked_rule, rules))


def rules_of(entity: EntityRecord) -> tuple[AuthorizationRule, ...]:
    """Return the rules of an entity, of whatever kind it is."""
    stored = next((entity.description[name] for name in _PROPERTIES if name in entity.description), ())
    return tuple(map(AuthorizationRule.from_json, stored))


def entity_at(namespaces: NamespaceStore, namespace: str, path: str) -> tuple[EntityRecord, str] | None:
    """Return the entity that a path leads to, and the rest of the path behind its name; None without one.

    Names have slashes too: the longest name that exists counts, so that `a/subscriptions/s` is a queue if there is a
    queue of this name.
    """
    name = path.strip("/")
    while name:
        entity = namespaces.find(namespace, name)
        if entity is not None:
            return entity, path.strip("/")[len(name) :].strip("/")
        name = name.rpartition("/")[0]
    return None


class AuthorizationRules:
    """Finds and changes the shared access rules of namespaces. One per process."""

    def __init__(self, namespaces: NamespaceStore, keys_of_account: Callable[[str], Sequence[str] | None]) -> None:
        """`keys_of_account` returns the texts of the keys of a namespace, the first of them the primary one; None for
        a namespace that does not exist."""
        self._namespaces = namespaces
        self._keys_of_account = keys_of_account

    def is_namespace(self, namespace: str) -> bool:
        return self._keys_of_account(namespace) is not None

    def root_rule(self, namespace: str) -> AuthorizationRule:
        """Return the rule that a namespace has from its account; ResourceNotFound if there is no such namespace."""
        keys = self._keys_of_account(namespace)
        if not keys:
            raise ResourceNotFound(kind="namespace", name=namespace)
        return AuthorizationRule(ROOT_RULE, frozenset(RIGHTS), keys[0], keys[1] if len(keys) > 1 else "")

    async def of_namespace(self, namespace: str) -> list[AuthorizationRule]:
        """Return the rules of a namespace, that of its account first."""
        return [self.root_rule(namespace), *_decode(await self._namespaces.get_document(namespace, _DOCUMENT))]

    async def applying_to(self, namespace: str, path: str) -> dict[str, AuthorizationRule]:
        """Return by their names the rules that may grant something on a path: those of its entity, and of the
        namespace. The entity's rule counts where both have one of a name."""
        found = {rule.name: rule for rule in await self.of_namespace(namespace)}
        entity = entity_at(self._namespaces, namespace, path)
        if entity is not None:
            found |= {rule.name: rule for rule in rules_of(entity[0])}
        return found

    async def put(self, namespace: str, rule: AuthorizationRule) -> AuthorizationRule:
        """Create or replace a rule of a namespace, durably."""
        if rule.name.lower() == ROOT_RULE.lower():
            raise MalformedRequest(
                reason=f"The rule {ROOT_RULE} has the keys of the account, which change with the account only."
            )
        rules = await self._change(namespace, lambda known: with_rule(known, rule))
        return next(known for known in rules if known.name.lower() == rule.name.lower())

    async def delete(self, namespace: str, name: str) -> None:
        """Delete a rule of a namespace, durably; ResourceNotFound if no rule has the name."""
        await self._change(namespace, lambda known: without_rule(known, name))

    async def _change(
        self, namespace: str, change: Callable[[tuple[AuthorizationRule, ...]], tuple[AuthorizationRule, ...]]
    ) -> tuple[AuthorizationRule, ...]:
        for _ in range(_ATTEMPTS_MAX):
            before = await self._namespaces.get_document(namespace, _DOCUMENT)
            rules = change(_decode(before))
            content = json.dumps([rule.to_json() for rule in rules]).encode()
            if await self._namespaces.replace_document(namespace, _DOCUMENT, content, before=before):
                return rules
        raise TooMuchContention


def _decode(document: bytes | None) -> tuple[AuthorizationRule, ...]:
    return () if document is None else tuple(map(AuthorizationRule.from_json, json.loads(document)))
