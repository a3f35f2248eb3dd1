"""Resources in the form of the resource manager: their paths, their names, and the objects that show them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Final

from asterism.errors import ResourceNotFound

# The first type below a namespace -> the provider that has it. Rules are known to both.
_PROVIDERS: Final = {
    "eventhubs": "microsoft.eventhub",
    "queues": "microsoft.servicebus",
    "topics": "microsoft.servicebus",
}
_ACTIONS: Final = ("listkeys", "regeneratekeys")
_RESOURCE: Final = re.compile(
    r"/subscriptions/[^/]+/resourcegroups/[^/]+/providers/(?P<provider>microsoft\.(?:eventhub|servicebus))"
    r"/namespaces/(?P<namespace>[^/]+)(?P<rest>(?:/[^/]+)*)/?",
    re.IGNORECASE,
)
# Types as the resource manager spells them.
_SPELLINGS: Final = {"consumergroups": "consumergroups", "authorizationrules": "authorizationRules"}


@dataclass(frozen=True, slots=True)
class Resource:
    # As the request has it.
    path: str
    provider: str
    namespace: str
    # The types below the namespace in lower case; the last of a list has no name.
    types: tuple[str, ...]
    names: tuple[str, ...]
    # `listkeys` or `regeneratekeys`; empty for the resource itself.
    action: str

    @property
    def is_list(self) -> bool:
        return len(self.types) > len(self.names)

    @property
    def name(self) -> str:
        return self.names[-1] if self.names else self.namespace

    @property
    def entity_path(self) -> str:
        """The path of the entity that the resource is, or is a part of; empty for the namespace."""
        return self.names[0] if self.names and self.types[0] in _PROVIDERS else ""

    @property
    def type_name(self) -> str:
        return "/".join((f"{self.provider}/Namespaces", *(_SPELLINGS.get(name, name) for name in self.types)))

    def shown(self, name: str, properties: dict[str, Any]) -> dict[str, Any]:
        """Return the object of the resource, or of one in its list."""
        path = f"{self.path}/{escaped(name)}" if self.is_list else self.path
        return {"id": path, "name": escaped(name), "type": self.type_name, "properties": properties}


def parse_resource(path: str) -> Resource:
    """Return the resource in a path; ResourceNotFound if there is no such kind of resource."""
    found = _RESOURCE.fullmatch(path)
    segments = [segment for segment in found["rest"].split("/") if segment] if found is not None else []
    action = segments.pop().lower() if segments and segments[-1].lower() in _ACTIONS and len(segments) % 2 else ""
    types = tuple(segment.lower() for segment in segments[::2])
    provider = found["provider"].lower() if found is not None else ""
    if found is None or (types and _PROVIDERS.get(types[0], provider) != provider):
        raise ResourceNotFound(kind="resource", name=path[:200])
    return Resource(
        path.rstrip("/"),
        found["provider"],
        found["namespace"].lower(),
        types,
        tuple(segment.replace("~", "/") for segment in segments[1::2]),
        action,
    )


def escaped(name: str) -> str:
    """Return a name as a segment of a path: the resource manager writes `~` for the slashes of queues and topics."""
    return name.replace("/", "~")
