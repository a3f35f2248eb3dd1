"""What an operator may choose, checked before anything is opened."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING

from asterism.access.keys import WELL_KNOWN_EMULATOR_KEY, AccountKeys
from asterism.apis.table.accounts import DEVELOPMENT_ACCOUNT, DEVELOPMENT_KEY, Account, parse_account
from asterism.limits import DEFAULT_LIMITS, GIB, KIB, MIB, Limits

if TYPE_CHECKING:
    from asterism.server.fleet_config import FleetConfig

API_NAMES = ("nosql", "table")
CONSISTENCY_LEVELS = ("Strong", "BoundedStaleness", "Session", "ConsistentPrefix", "Eventual")

_UNIT_BYTES = {"": 1, "B": 1, "KB": KIB, "MB": MIB, "GB": GIB}
_HOST_NAME = re.compile(r"\*|(?:\*\.)?[a-z0-9_-]+(?:\.[a-z0-9_-]+)*")
_AMOUNT = re.compile(r"([0-9]+) ?([KMG]?B|)", re.IGNORECASE)
# What needs no encoding in an address.
_ACCOUNT_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class StartRefused(Exception):
    """The server cannot start as asked; the text is one line for the operator."""


@dataclass(frozen=True, slots=True)
class ServerConfig:
    data: Path = Path("asterism-data")
    host: str = "127.0.0.1"
    # 0 lets the operating system choose.
    port: int = 8081
    https: bool = False
    tls_names: tuple[str, ...] = ()
    key: str = field(default=WELL_KNOWN_EMULATOR_KEY, repr=False)
    seed: Path | None = None
    throttle: bool = True
    # Any name but "localhost": the JavaScript client would read the account again before every request.
    account: str = "asterism"
    consistency: str = "Session"
    limits: Limits = DEFAULT_LIMITS
    # Clients that poll the ranges or the offer, commonly every second, then see a split coming.
    announce_seconds: float = 2.0
    # None: the store in the data directory.
    fleet: FleetConfig | None = None
    # Where that was read, to be read again when a node turns up that it did not name.
    fleet_file: Path | None = None
    # Processes that serve the same ports over the same store.
    workers: int = 1
    # The protocols that are served; see API_NAMES.
    apis: tuple[str, ...] = API_NAMES
    # Azurite's, where clients look with `UseDevelopmentStorage=true`.
    table_port: int = 10002
    cosmos_table_port: int = 8902
    # As NAME:KEY. Without any there is the well-known development account, with its key that everybody knows.
    table_accounts: tuple[str, ...] = field(default=(), repr=False)
    # Further ones that only the listener for Cosmos DB for Table knows, or knows by another key.
    cosmos_table_accounts: tuple[str, ...] = field(default=(), repr=False)
    # Whether tables take bearer tokens that nobody has signed, as test tools make them.
    unsigned_tokens: bool = False
    # Whether queries that the service refuses, and that run here, are answered.
    lenient_sql: bool = False
    # Host names that are answered besides the local ones while a key is public; "*" for any.
    allowed_hosts: tuple[str, ...] = ()

    @property
    def scheme(self) -> str:
        return "https" if self.https else "http"

    @property
    def key_is_public(self) -> bool:
        return self.key in (WELL_KNOWN_EMULATOR_KEY, DEVELOPMENT_KEY)


def limit_names() -> dict[str, str]:
    """What `--limit` calls a limit -> its field; `-max` is left out where the name is clear without it."""
    names = [one.name for one in fields(Limits)]
    stems = [name.removesuffix("_max").removesuffix("_min") for name in names]
    clear = {stem for stem in stems if stems.count(stem) == 1}
    return {(stem if stem in clear else name).replace("_", "-"): name for name, stem in zip(names, stems, strict=True)}


def parse_limits(given: Sequence[str]) -> Limits:
    """Limits from texts such as `logical-partition-bytes=64KB`."""
    changes = dict(_parse_limit(one) for one in given)
    limits = DEFAULT_LIMITS.with_changes(**changes)
    if limits.item_bytes_max > limits.request_bytes_max:
        raise StartRefused("the limit item-bytes is above request-bytes, so no such item could arrive; raise both")
    if limits.throughput_ru_per_second_min > limits.throughput_ru_per_second_max:
        raise StartRefused("the limit throughput-ru-per-second-min is above throughput-ru-per-second-max")
    return limits


def _parse_limit(given: str) -> tuple[str, int]:
    name, equals, amount_text = (part.strip() for part in given.partition("="))
    known = limit_names()
    if not equals:
        raise StartRefused(f"the limit {given!r} has no value; write NAME=VALUE, for example item-bytes=64KB")
    field_name = known.get(name) or known.get(name.removesuffix("-max"))
    if field_name is None:
        raise StartRefused(f"there is no limit {name!r}; the limits are {', '.join(known)}")
    amount = _AMOUNT.fullmatch(amount_text)
    if amount is None or (amount[2] and "bytes" not in field_name):
        unit = " with B, KB, MB or GB behind it or nothing" if "bytes" in field_name else ""
        raise StartRefused(f"the limit {name} is {amount_text!r}; it must be a whole number{unit}")
    value = int(amount[1]) * _UNIT_BYTES[amount[2].upper()]
    # Sizes are kept in signed 64-bit counters.
    if not 0 < value < 2**62:
        raise StartRefused(f"the limit {name} is {amount_text!r}; it must be above 0 and below 2**62")
    return field_name, value


def parse_consistency(given: str) -> str:
    for level in CONSISTENCY_LEVELS:
        if level.lower() == given.lower():
            return level
    raise StartRefused(f"there is no consistency level {given!r}; the levels are {', '.join(CONSISTENCY_LEVELS)}")


def parse_allowed_hosts(given: Sequence[str]) -> tuple[str, ...]:
    """Host names from texts with one or several, with commas between."""
    hosts = tuple(name.strip().lower() for text in given for name in text.split(",") if name.strip())
    wrong = next((host for host in hosts if not _HOST_NAME.fullmatch(host)), None)
    if wrong is not None:
        raise StartRefused(f"{wrong!r} is no host name; write a name without scheme and port, *.NAME, or *")
    return hosts


def parse_apis(given: str) -> tuple[str, ...]:
    """The protocols in a text such as `nosql,table`, in the order of API_NAMES."""
    names = {name.strip().lower() for name in given.split(",") if name.strip()}
    unknown = sorted(names.difference(API_NAMES))
    if unknown or not names:
        told = f"there is no protocol {unknown[0]!r}" if unknown else "no protocol is chosen"
        raise StartRefused(f"{told}; the protocols are {', '.join(API_NAMES)}")
    return tuple(name for name in API_NAMES if name in names)


def accounts_of_tables(config: ServerConfig) -> dict[str, Account]:
    given = config.table_accounts or (f"{DEVELOPMENT_ACCOUNT}:{DEVELOPMENT_KEY}",)
    return _parse_accounts(given)


def accounts_of_cosmos_tables(config: ServerConfig) -> dict[str, Account]:
    return accounts_of_tables(config) | _parse_accounts(config.cosmos_table_accounts)


def _parse_accounts(given: Sequence[str]) -> dict[str, Account]:
    try:
        accounts = [parse_account(text) for text in given]
    except ValueError as error:
        raise StartRefused(f"a table account cannot be used: {error}") from None
    by_name = {account.name: account for account in accounts}
    if len(by_name) < len(accounts):
        names = [account.name for account in accounts]
        twice = next(name for name in names if names.count(name) > 1)
        raise StartRefused(f"the table account {twice!r} is given twice; two keys of one are NAME:KEY1;KEY2")
    return by_name


def check_account(config: ServerConfig) -> None:
    """Refuse an account whose name cannot stand in an address, where clients and connection strings put it."""
    if not _ACCOUNT_NAME.fullmatch(config.account):
        raise StartRefused(
            f"the account cannot be named {config.account[:64]!r}; use up to 64 letters, digits, hyphens, dots and "
            "underscores, with a letter or digit first"
        )


def check_ports(config: ServerConfig) -> None:
    """Listeners may share a port with those of other processes, so nothing else would notice that two doors of this
    one have the same: each would get some of the other's requests."""
    ports = [config.port] if "nosql" in config.apis else []
    if "table" in config.apis:
        ports += [config.table_port, config.cosmos_table_port]
    shared = next((port for port in ports if port and ports.count(port) > 1), None)
    if shared is not None:
        raise StartRefused(
            f"two protocols cannot share the port {shared}; change --port, --table-port or --cosmos-table-port"
        )


def account_keys(config: ServerConfig) -> AccountKeys:
    try:
        return AccountKeys.complete(primary=config.key)
    except ValueError as error:
        raise StartRefused(f"the key cannot be used: {error}") from None
