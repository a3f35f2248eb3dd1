"""Azure Table storage and Cosmos DB for Table as one row of the table of doors: the same tables, at two ports."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from asterism.access.keys import DEVELOPMENT_ACCOUNT, DEVELOPMENT_KEY
from asterism.apis.door_spec import (
    HIDDEN_KEY,
    CollectionKind,
    DoorSpec,
    Endpoint,
    Greeting,
    Introduction,
    PortSpec,
    Surroundings,
)
from asterism.apis.settings import WHO, StartRefused, option
from asterism.apis.table.accounts import Account, follow_accounts, parse_account
from asterism.limits import MIB, limit

if TYPE_CHECKING:
    from asterism.apis.services import DoorServices
    from asterism.apis.transports.doors import AnyDoor


def parse_accounts(given: Sequence[str]) -> tuple[Account, ...]:
    try:
        accounts = tuple(parse_account(text) for text in given)
    except ValueError as error:
        raise StartRefused(f"a table account cannot be used: {error}") from None
    names = [account.name for account in accounts]
    repeated = next((name for name in names if names.count(name) > 1), None)
    if repeated is not None:
        raise StartRefused(f"the table account {repeated!r} is given twice; two keys of one are NAME:KEY1;KEY2")
    return accounts


@dataclass(frozen=True, slots=True)
class TableSettings:
    # Without any there is the development account, with its public key.
    given_accounts: tuple[Account, ...] = option(
        (),
        "--table-account",
        "An account for tables, its key in base64; may be repeated.",
        panel=WHO,
        metavar="NAME:KEY",
        is_repeatable=True,
        is_secret=True,
        default_help="the well-known development account",
        parse=parse_accounts,
    )
    # Accounts that only this port knows, or knows by another key.
    more_cosmos_accounts: tuple[Account, ...] = option(
        (),
        "--cosmos-table-account",
        "A further account, or another key, for the port of Cosmos DB for Table; may be repeated.",
        panel=WHO,
        metavar="NAME:KEY",
        is_repeatable=True,
        is_secret=True,
        parse=parse_accounts,
    )
    unsigned_tokens: bool = option(
        False,
        "--unsigned-tokens",
        "Let tables take bearer tokens that nobody has signed. For tests only.",
        panel=WHO,
    )
    # The door refuses bodies above 4 MB in its protocol's own words; only larger ones still are refused before.
    table_request_bytes_max: int = limit(
        16 * MIB, "The largest body of a request that the ports for tables read; the protocol allows 4 MB of it."
    )

    @property
    def accounts(self) -> dict[str, Account]:
        given = self.given_accounts or (parse_account(f"{DEVELOPMENT_ACCOUNT}:{DEVELOPMENT_KEY}"),)
        return {account.name: account for account in given}

    @property
    def cosmos_accounts(self) -> dict[str, Account]:
        return self.accounts | {account.name: account for account in self.more_cosmos_accounts}


def _build(services: DoorServices, settings: TableSettings) -> Mapping[str, AnyDoor]:
    from asterism.apis.table.door import TableDoor

    kept = services.documents.catalog.accounts

    def door(accounts: dict[str, Account], *, is_cosmos: bool) -> TableDoor:
        return TableDoor(
            services.tables,
            accounts=follow_accounts(accounts, kept),
            clock=services.clock,
            is_cosmos=is_cosmos,
            unsigned_tokens=settings.unsigned_tokens,
            new_request_id=services.new_request_id,
            guard=services.guard,
            meter=services.meter,
        )

    return {
        "table": door(settings.accounts, is_cosmos=False),
        "cosmos-table": door(settings.cosmos_accounts, is_cosmos=True),
    }


def _connection_strings(settings: TableSettings, server: Surroundings, with_secrets: bool) -> Mapping[str, str]:
    """Return the strings of the first account, at both ports."""

    def connection_string(account: Account, place: Endpoint) -> str:
        key = base64.b64encode(account.keys[0]).decode() if account.is_public or with_secrets else HIDDEN_KEY
        scheme = "https" if place.is_encrypted else "http"
        return (
            f"DefaultEndpointsProtocol={scheme};AccountName={account.name};AccountKey={key};"
            f"TableEndpoint={place.url}{account.name};"
        )

    account = next(iter(settings.accounts.values()))
    return {
        "table": connection_string(account, server.endpoints["table"]),
        "cosmos-table": connection_string(settings.cosmos_accounts[account.name], server.endpoints["cosmos-table"]),
    }


def _greeting(settings: TableSettings, server: Surroundings) -> Greeting:
    account, *others = settings.accounts
    lines = [
        ("Tables", f"{server.endpoints['table'].url}{account}"),
        ("Cosmos DB tables", f"{server.endpoints['cosmos-table'].url}{account} (the same tables)"),
    ]
    if others:
        lines.append(("Other accounts", ", ".join(others)))
    if settings.given_accounts or server.is_local:
        return Greeting(lines)
    warning = (
        f"everybody knows the key of the account {DEVELOPMENT_ACCOUNT}; give tables accounts of your own with "
        "--table-account."
    )
    return Greeting(lines, [warning])


def _introduce(settings: TableSettings, server: Surroundings, account: str, key: str) -> Introduction:
    from asterism.apis.table.introduction import introduce

    return introduce(settings, server, account, key)


SPEC = DoorSpec(
    name="table",
    help="Azure Table storage and Cosmos DB for Table",
    ports=(
        # Azurite's, where clients look with `UseDevelopmentStorage=true`.
        PortSpec(
            "table",
            "--table-port",
            10002,
            "Port for Azure Table storage; 0 for any.",
            request_limit="table_request_bytes_max",
        ),
        PortSpec(
            "cosmos-table",
            "--cosmos-table-port",
            8902,
            "Port for the same tables as Cosmos DB for Table; 0 for any.",
            request_limit="table_request_bytes_max",
        ),
    ),
    settings=TableSettings,
    accounts=("storage", "cosmos"),
    modules=("asterism.apis.table.door",),
    build=_build,
    greeting=_greeting,
    introduce=_introduce,
    connection_strings=_connection_strings,
    collections=CollectionKind(
        "table",
        "tables",
        owns=lambda settings: "table" in settings,
        explorer="entities",
        name_property="table",
        is_in_database=False,
        parameter="table",
    ),
    account_keys=lambda settings: {name: account.keys[0] for name, account in settings.cosmos_accounts.items()},
)
