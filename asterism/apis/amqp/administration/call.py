"""A request for administration on its way to its handler, and the parts that handlers share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qsl

from asterism.access.account_settings import key_text
from asterism.apis.amqp.administration.entity_xml import Shown
from asterism.apis.http_pipeline import HttpCall
from asterism.errors import MalformedRequest

if TYPE_CHECKING:
    from asterism.apis.amqp.administration.address import Address
    from asterism.apis.amqp.administration.operations import BusAdministration
    from asterism.apis.transports.http import Request
    from asterism.models.event_logs.store import EventLogStore
    from asterism.models.namespaces.authorization import AuthorizationRules

# As long as the service's own keys of shared access rules.
_KEY_BYTES: Final = 32
PAGE_ENTRIES_MAX: Final = 100
_VERSION_CHARACTERS_MAX: Final = 32
_DEFAULT_VERSION: Final = "2021-05"


@dataclass(frozen=True, slots=True)
class AdministrationServices:
    """Everything that handlers need. One per process."""

    bus: BusAdministration
    hubs: EventLogStore
    rules: AuthorizationRules
    random_bytes: Callable[[int], bytes]

    def now_ms(self) -> int:
        return self.bus.now_ms()

    def new_key(self) -> str:
        """Return the text of a new key of a shared access rule."""
        return key_text(self.random_bytes(_KEY_BYTES))


class AdministrationCall(HttpCall):
    __slots__ = ("address", "namespace", "query")

    address: Address

    def __init__(self, request: Request, request_id: str, namespace: str) -> None:
        super().__init__(request, request_id)
        self.namespace = namespace
        self.query = {name.lower(): value for name, value in parse_qsl(request.query_string, keep_blank_values=True)}

    @property
    def api_version(self) -> str:
        version = self.query.get("api-version", _DEFAULT_VERSION)
        return version if len(version) <= _VERSION_CHARACTERS_MAX else _DEFAULT_VERSION

    @property
    def base(self) -> str:
        """The address of the namespace, as the client wrote it."""
        return f"{self.request.scheme}://{self.request.authority}"

    @property
    def host(self) -> str:
        """The host name of the namespace, without a port."""
        return host_of(self.request.authority)

    @property
    def shown(self) -> Shown:
        return Shown(f"sb://{self.host}/", self.api_version)

    @property
    def is_update(self) -> bool:
        return "if-match" in self.request.headers

    def page(self) -> tuple[int, int]:
        """Return how many entries of a list to leave out, and how many to give at most."""
        skip, top = self._number("$skip", 0), self._number("$top", PAGE_ENTRIES_MAX)
        return skip, min(top, PAGE_ENTRIES_MAX)

    def _number(self, name: str, default: int) -> int:
        text = self.query.get(name, "")
        if not text:
            return default
        if not text.isascii() or not text.isdigit() or len(text) > 9:
            raise MalformedRequest(reason=f"The value of {name} is not a number from 0 on.")
        return int(text)


def host_of(authority: str) -> str:
    """Return the host of an authority such as `localhost:5300` or `[::1]:5300`."""
    if authority.startswith("["):
        return authority.partition("]")[0][1:]
    return authority.partition(":")[0]
