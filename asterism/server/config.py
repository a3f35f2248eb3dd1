"""The configuration of the server, checked before anything is opened.

The fields of `ServerConfig` stand in the order of `asterism serve --help`; `configure` makes the options of them, and a
configuration of the options.
"""

from __future__ import annotations

import ipaddress
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from asterism.access.keys import PUBLIC_KEYS, WELL_KNOWN_EMULATOR_KEY, AccountKeys
from asterism.apis.door_spec import DoorSpec, PortSpec
from asterism.apis.settings import HOW, WHERE, WHO, option
from asterism.apis.settings import StartRefused as StartRefused
from asterism.limits import DEFAULT_LIMITS, Limits
from asterism.server.doors import DOORS

if TYPE_CHECKING:
    from asterism.server.fleet.config import FleetConfig

# The value of `--data` for a server that keeps nothing.
IN_MEMORY = Path(":memory:")

_HOST_NAME = re.compile(r"\*|(?:\*\.)?[a-z0-9_-]+(?:\.[a-z0-9_-]+)*")
# Characters that need no encoding in an address.
_ACCOUNT_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


@dataclass(frozen=True, slots=True)
class ConfiguredDoor:
    spec: DoorSpec[Any]
    settings: Any
    # By the name of the port.
    ports: Mapping[str, int]
    is_served: bool = True

    def limit(self, name: str, limits: Limits) -> int:
        """Return a limit of the door's own, or else of the database."""
        return int(getattr(self.settings if name in self.spec.limits else limits, name))


def _by_default(spec: DoorSpec[Any]) -> ConfiguredDoor:
    return ConfiguredDoor(spec, spec.settings(), {port.name: port.default for port in spec.ports})


def parse_allowed_hosts(given: Sequence[str]) -> tuple[str, ...]:
    """Host names from texts with one or several, with commas between."""
    hosts = tuple(name.strip().lower() for text in given for name in text.split(",") if name.strip())
    wrong = next((host for host in hosts if not _HOST_NAME.fullmatch(host)), None)
    if wrong is not None:
        raise StartRefused(f"{wrong!r} is no host name; write a name without scheme and port, *.NAME, or *")
    return hosts


def _fleet_of_stores(urls: Sequence[str]) -> FleetConfig | None:
    if not urls:
        return None
    from asterism.server.fleet.config import fleet_of_stores

    return fleet_of_stores(urls)


@dataclass(frozen=True, slots=True)
class ServerConfig:
    data: Path = option(
        Path("asterism-data"),
        "--data",
        "Data directory; made if missing. :memory: keeps everything in memory, and nothing when the server ends.",
        panel=WHERE,
        kind=Path,
        metavar="DIR",
    )
    host: str = option("127.0.0.1", "--host", "Address to listen on; 0.0.0.0 for all.", panel=WHERE)
    key: str = option(
        WELL_KNOWN_EMULATOR_KEY,
        "--key",
        "Account key, base64. Better in the environment, where other users do not see it.",
        panel=WHO,
        metavar="KEY",
        is_secret=True,
        default_help="the emulator's well-known key",
        parse=str.strip,
    )
    # Any name but "localhost": the JavaScript client would read the account again before every request.
    account: str = option("asterism", "--account", "Account name.", panel=WHO, metavar="NAME")
    # All of the table, with their ports and settings: `--apis`, and the options of each.
    doors: tuple[ConfiguredDoor, ...] = tuple(map(_by_default, DOORS))
    https: bool = option(
        False, "--https", "Encrypt, with a self-signed certificate that is kept in the data directory.", panel=WHERE
    )
    tls_names: tuple[str, ...] = option(
        (),
        "--tls-name",
        "A further host name or address for the certificate; may be repeated.",
        panel=WHERE,
        metavar="NAME",
        is_repeatable=True,
    )
    # Read again when a node turns up that it did not name.
    fleet_file: Path | None = option(
        None,
        "--fleet",
        "Keep the data on the nodes that this TOML file describes, and not in the data directory.",
        panel=WHERE,
        kind=Path,
        metavar="FILE",
    )
    # From that file, or from `--store`; None: the store in the data directory.
    fleet: FleetConfig | None = option(
        None,
        "--store",
        "The same without a file: postgresql://… or lmdb:DIR; may be repeated, the first has the catalog.",
        panel=WHERE,
        metavar="URL",
        is_repeatable=True,
        parse=_fleet_of_stores,
    )
    # Host names that are answered besides the local ones while a key is public; "*" for any.
    allowed_hosts: tuple[str, ...] = option(
        (),
        "--allowed-host",
        "While a key is the public development key, requests by a host name with a dot are refused, so that no "
        "web page can use the server; this name is answered, *.NAME all below it, * any. May be repeated.",
        panel=WHO,
        metavar="NAME",
        is_repeatable=True,
        parse=parse_allowed_hosts,
    )
    seed: Path | None = option(
        None,
        "--seed",
        "At first start, create what this JSON file says:",
        panel=HOW,
        kind=Path,
        metavar="FILE",
    )
    throttle: bool = option(
        True,
        "--no-throttle",
        "Charge request units but never answer 429.",
        panel=HOW,
        parse=lambda is_off: not is_off,
    )
    # Processes that serve the same ports over the same store.
    workers: int = option(
        1,
        "--workers",
        "Processes that serve together, over one store; each uses one core.",
        panel=HOW,
        metavar="N",
        minimum=1,
        maximum=64,
    )
    # Clients that poll the ranges or the offer, commonly every second, then see a split coming.
    announce_seconds: float = option(
        2.0,
        "--announce-seconds",
        "How long a split for throughput is announced (offer pending, range splitting) before it happens.",
        panel=HOW,
        metavar="SECONDS",
        minimum=0,
    )
    slow_seconds: float = option(
        math.inf,
        "--slow-log-ms",
        "Write a line to the log for every request that takes this many milliseconds or more.",
        panel=HOW,
        metavar="MILLISECONDS",
        default_help="off",
        minimum=0,
        parse=lambda milliseconds: milliseconds / 1000,
    )
    # Every process keeps it in its own memory.
    metrics_history_hours: float = option(
        6.0,
        "--metrics-history",
        "How many hours of every partition's usage are kept, in bounded memory; 0 keeps none.",
        panel=HOW,
        metavar="HOURS",
        minimum=0,
        maximum=8760,
    )
    ready_file: Path | None = option(
        None,
        "--ready-file",
        "When the server is ready, write its process, ports and addresses to this JSON file. Removed when it stops.",
        panel=HOW,
        kind=Path,
        metavar="FILE",
    )
    test_controls: bool = option(
        False,
        "--test-controls",
        "Let the holder of the key make requests fail, shift the clock and delete everything. For test suites only, "
        "never in production.",
        panel=HOW,
    )
    limits: Limits = option(
        DEFAULT_LIMITS,
        "--limit",
        "Change a limit; bytes may end in KB, MB or GB; may be repeated.",
        panel=HOW,
        metavar="NAME=VALUE",
        is_repeatable=True,
    )

    @property
    def is_in_memory(self) -> bool:
        return self.data == IN_MEMORY

    @property
    def key_is_public(self) -> bool:
        return self.key in PUBLIC_KEYS

    @property
    def account_names(self) -> frozenset[str]:
        return frozenset({self.account, *self.keys_of_doors})

    @property
    def keys_of_doors(self) -> dict[str, bytes]:
        """Return the first key of each account that the settings of a door give."""
        return {name: key for door in self.doors for name, key in door.spec.account_keys(door.settings).items()}

    @property
    def served_ports(self) -> list[PortSpec]:
        return [port for door in self.served_doors for port in door.spec.ports]

    @property
    def may_need_certificate(self) -> bool:
        return any(self.encrypts(port) or port.encryption == "optional" for port in self.served_ports)

    def encrypts(self, port: PortSpec) -> bool:
        return port.encryption == "always" or (port.encryption == "with --https" and self.https)

    @property
    def served_doors(self) -> list[ConfiguredDoor]:
        return [door for door in self.doors if door.is_served]


def check_account(config: ServerConfig) -> None:
    """Refuse an account whose name cannot stand in an address, where clients and connection strings put it."""
    if not _ACCOUNT_NAME.fullmatch(config.account):
        raise StartRefused(
            f"the account cannot be named {config.account[:64]!r}; use up to 64 letters, digits, hyphens, dots and "
            "underscores, with a letter or digit first"
        )


def check_doors(config: ServerConfig) -> None:
    """Refuse settings of a door that do not go with the address of the server."""
    for door in config.served_doors:
        reason = door.spec.refusal(door.settings, is_loopback(config.host))
        if reason is not None:
            raise StartRefused(reason)


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def check_memory(config: ServerConfig) -> None:
    """Refuse data in memory for a server that several processes or stores belong to."""
    if not config.is_in_memory:
        return
    if config.workers > 1:
        raise StartRefused(
            "--data :memory: serves with one process, because processes do not share memory; "
            "leave out --workers, or give a data directory"
        )
    if config.fleet is not None:
        raise StartRefused("--data :memory: cannot be combined with --fleet or --store; give a data directory")


def check_test_controls(config: ServerConfig) -> None:
    """Refuse test controls for a server of several processes: each would have a clock and faults of its own."""
    if config.test_controls and (config.workers > 1 or config.fleet is not None):
        raise StartRefused("--test-controls need a single process; leave out --workers, --fleet and --store")


def check_ports(config: ServerConfig) -> None:
    """Listeners may share a port with those of other processes, so nothing else would notice that two doors of this
    one have the same: each would get some of the other's requests."""
    flags_by_port: dict[int, list[str]] = {}
    for door in config.served_doors:
        for port in door.spec.ports:
            flags_by_port.setdefault(door.ports[port.name], []).append(port.flag)
    for number, flags in flags_by_port.items():
        if number and len(flags) > 1:
            raise StartRefused(
                f"two protocols cannot share the port {number}; change {', '.join(flags[:-1])} or {flags[-1]}"
            )


def account_keys(config: ServerConfig) -> AccountKeys:
    try:
        return AccountKeys.complete(primary=config.key)
    except ValueError as error:
        raise StartRefused(f"the key cannot be used: {error}") from None
