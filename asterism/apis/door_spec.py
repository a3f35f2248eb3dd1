"""A door as a row: everything outside its folder that depends on it is read from its `DoorSpec`.

The specs of all doors stand in `asterism/server/doors.py`. A spec is imported by every command, so it imports the door
itself, and whatever takes time to load, within `build`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, Literal, TypeVar

from asterism.apis.settings import WHERE, Option, options_of
from asterism.limits import limit_helps

if TYPE_CHECKING:
    from asterism.apis.services import DoorServices
    from asterism.apis.transports.doors import AnyDoor, Transport

S = TypeVar("S")

# In the place of a secret, in texts for people.
HIDDEN_KEY = "********"

AccountKind = Literal["cosmos", "storage", "messaging"]
# When a port is encrypted, with the certificate of the server. A port other than "http" can leave it to its clients.
Encryption = Literal["with --https", "always", "never", "optional"]


@dataclass(frozen=True, slots=True)
class PortSpec:
    """A port of a door; no two ports of the server have the same name or option."""

    name: str
    flag: str
    # 0 in place of it lets the operating system choose.
    default: int
    help: str
    # Decides what `DoorSpec.build` makes for the port; see `asterism.apis.transports.doors`.
    transport: Transport = "http"
    encryption: Encryption = "with --https"
    # Limits, as fields of the door's settings or of `Limits`: of the body of a request, or of a message;
    request_limit: str = "request_bytes_max"
    # of a body that a route reads in pieces, if that is another;
    streamed_request_limit: str | None = None
    # of the time between two messages of a connection that is not plain HTTP, if that is another.
    idle_limit: str = "idle_connection_seconds_max"
    # Answers browsers with pages about the server, which commands can point to.
    is_web_page: bool = False

    @property
    def option(self) -> Option:
        return Option(self.flag, kind=int, default=self.default, help=self.help, panel=WHERE, minimum=0, maximum=65535)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The address at which clients on this machine reach a port."""

    host: str
    port: int
    transport: Transport
    is_encrypted: bool

    @property
    def address(self) -> str:
        return f"{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"

    @property
    def url(self) -> str:
        scheme = "tcp" if self.transport == "tcp" else "http"
        return f"{scheme}{'s' if self.is_encrypted else ''}://{self.address}/"


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Facts of the server that the greeting of a door may need."""

    # By the name of the port.
    endpoints: Mapping[str, Endpoint]
    # No other machine can reach them.
    is_local: bool
    account: str
    key: str = field(repr=False)
    key_is_public: bool


@dataclass(frozen=True, slots=True)
class Greeting:
    """Lines about a door that the operator reads when the server is ready; they never tell a secret."""

    # Each with its heading, which has at most 18 characters.
    lines: Sequence[tuple[str, str]] = ()
    warnings: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Snippet:
    """A whole program for an official client, which runs against this server as it is."""

    language: str
    # The package as its tool installs it, or the coordinates that a build file names.
    package: str
    code: str


@dataclass(frozen=True, slots=True)
class Introduction:
    """First steps with a door for an account; they tell the key that the caller gave, so they are for its owner."""

    title: str
    # Each with its heading.
    endpoints: Sequence[tuple[str, str]]
    connection_strings: Sequence[tuple[str, str]]
    snippets: Sequence[Snippet]


@dataclass(frozen=True, slots=True)
class SeedSpec:
    """A property of the seed file, and how the door creates what it holds."""

    name: str
    # The property and its value, as the help of `--seed` shows them.
    shape: str
    # Checks the value of the property, which has this place in the file; raises StartRefused.
    read: Callable[[object, str], Any]
    # Creates what does not exist yet, and returns counts for the operator, such as `3 items`.
    create: Callable[[DoorServices, Any], Awaitable[Sequence[str]]]


@dataclass(frozen=True, slots=True)
class CollectionKind:
    """The keyspaces that a door's clients create, as operators see them beside those of other doors."""

    # As in "container" and "containers".
    noun: str
    plural: str
    # Of `KeyspaceRecord.settings`: True for the keyspaces of this kind, and of no other.
    owns: Callable[[Mapping[str, Any]], bool]
    # The form of the stored data, and so the explorer that can show it; None where none can.
    explorer: Literal["documents", "entities", "collections", "events", "messages"] | None
    # The property of the settings that has the name as clients gave it, if the name of the keyspace is not that.
    name_property: str | None = None
    # Clients name a database and then the collection; otherwise an account has only one, which they never name.
    is_in_database: bool = True
    # Without a database: the parameter that names one to operators, beside `account`.
    parameter: str | None = None
    # An account has one keyspace for all that clients create; each is a logical partition there, by its name.
    is_shared: bool = False


@dataclass(frozen=True, slots=True)
class DoorSpec(Generic[S]):
    # As in `--apis`.
    name: str
    # The protocol, in a few words.
    help: str
    ports: tuple[PortSpec, ...]
    # A frozen dataclass whose fields are declared with `option` and `limit`.
    settings: type[S]
    accounts: tuple[AccountKind, ...]
    # Loaded before workers are forked, which then share their memory; `build` would else import them in each.
    modules: tuple[str, ...]
    # Makes the object that answers at each port, by the port's name.
    build: Callable[[DoorServices, S], Mapping[str, AnyDoor]]
    greeting: Callable[[S, Surroundings], Greeting]
    seed: SeedSpec | None = None
    # Creates what the settings ask for before the ports open, and returns counts for the operator, such as `3 queues`.
    # Called at every start, by one of the workers.
    prepare: Callable[[DoorServices, S], Awaitable[Sequence[str]]] | None = None
    # Connection strings for programs, by the port's name. A key that is not public shows only if the last argument,
    # `with_secrets`, is True.
    connection_strings: Callable[[S, Surroundings, bool], Mapping[str, str]] = field(default=lambda _, __, ___: {})
    # Empty for a door that creates no keyspaces, or shows those of another.
    collections: tuple[CollectionKind, ...] = ()
    # Accounts that the settings give, which no command can change, each with its first key.
    account_keys: Callable[[S], Mapping[str, bytes]] = field(default=lambda _: {})
    # Called with the name of an account that the door serves and a key of it, as text.
    introduce: Callable[[S, Surroundings, str, str], Introduction] | None = None
    # The settings say that the door is not served, whatever `--apis` says.
    is_off: Callable[[S], bool] = field(default=lambda _: False)
    # Returns why the door cannot be served, or None; the second argument is True if only this machine can reach it.
    refusal: Callable[[S, bool], str | None] = field(default=lambda _, __: None)

    @property
    def options(self) -> list[Option]:
        """The options of the door, its ports first."""
        return [*(port.option for port in self.ports), *options_of(self.settings).values()]

    @property
    def limits(self) -> dict[str, str]:
        """The limits of the door, by the field of its settings, each with its help."""
        return limit_helps(self.settings)
