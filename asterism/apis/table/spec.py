"""Azure Table storage and Cosmos DB for Table as one row of the table of doors: the same tables, at two ports."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from asterism.apis.door_spec import (
    CollectionKind,
    DoorSpec,
    Greeting,
    Introduction,
    PortSpec,
    Surroundings,
)
from asterism.apis.settings import WHO, option
from asterism.apis.storage.accounts import Account, follow_accounts, parse_accounts
from asterism.apis.storage.settings import StorageSettings
from asterism.apis.storage.spec_texts import connection_string, warnings_about
from asterism.limits import MIB, limit

if TYPE_CHECKING:
    from asterism.apis.services import DoorServices
    from asterism.apis.transports.doors import AnyDoor


@dataclass(frozen=True, slots=True)
class TableSettings(StorageSettings):
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
    # The door refuses bodies above 4 MB in its protocol's own words; only larger ones still are refused before.
    table_request_bytes_max: int = limit(
        16 * MIB, "The largest body of a request that the ports for tables read; the protocol allows 4 MB of it."
    )

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

    account = next(iter(settings.accounts.values()))
    return {
        "table": connection_string(account, {"Table": server.endpoints["table"]}, with_secrets=with_secrets),
        "cosmos-table": connection_string(
            settings.cosmos_accounts[account.name],
            {"Table": server.endpoints["cosmos-table"]},
            with_secrets=with_secrets,
        ),
    }


def _greeting(settings: TableSettings, server: Surroundings) -> Greeting:
    account, *others = settings.accounts
    lines = [
        ("Tables", f"{server.endpoints['table'].url}{account}"),
        ("Cosmos DB tables", f"{server.endpoints['cosmos-table'].url}{account} (the same tables)"),
    ]
    if others:
        lines.append(("Other accounts", ", ".join(others)))
    return Greeting(lines, warnings_about(settings, server))


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
    collections=(
        CollectionKind(
            "table",
            "tables",
            owns=lambda settings: "table" in settings,
            explorer="entities",
            name_property="table",
            is_in_database=False,
            parameter="table",
        ),
    ),
    account_keys=lambda settings: {name: account.keys[0] for name, account in settings.cosmos_accounts.items()},
)
