"""First steps with the official clients for tables: endpoints, connection strings and programs that run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from asterism.apis.door_spec import Endpoint, Introduction, Surroundings
from asterism.apis.snippets import SnippetSource, render_snippets
from asterism.apis.storage.spec_texts import connection_text

if TYPE_CHECKING:
    from asterism.apis.table.spec import TableSettings

_FOLDER = Path(__file__).with_name("snippets")
_SOURCES = (
    SnippetSource("Python", "pip install azure-data-tables", "python.txt"),
    SnippetSource("JavaScript", "npm install @azure/data-tables", "javascript.txt"),
    SnippetSource("C#", "dotnet add package Azure.Data.Tables", "csharp.txt"),
    SnippetSource("Java", "com.azure:azure-data-tables:12.5.7", "java.txt"),
    SnippetSource("Go", "go get github.com/Azure/azure-sdk-for-go/sdk/data/aztables", "go.txt"),
)
_COSMOS = "Cosmos DB for Table"


def introduce(settings: TableSettings, server: Surroundings, account: str, key: str) -> Introduction:
    storage, cosmos = server.endpoints["table"], server.endpoints["cosmos-table"]
    named = [("Table storage", storage), (_COSMOS, cosmos)]
    if account in settings.cosmos_accounts and account not in settings.accounts:
        # Only this port knows the account.
        named = [(_COSMOS, cosmos)]
    strings = [(name, connection_text(account, key, {"Table": endpoint})) for name, endpoint in named]
    return Introduction(
        f"Tables, account {account}",
        endpoints=[(name, _account_url(endpoint, account)) for name, endpoint in named],
        connection_strings=strings,
        snippets=render_snippets(
            _SOURCES,
            _FOLDER,
            is_encrypted=named[0][1].is_encrypted,
            values={"CONNECTION_STRING": strings[0][1]},
        ),
    )


def _account_url(endpoint: Endpoint, account: str) -> str:
    return f"{endpoint.url}{account}"
