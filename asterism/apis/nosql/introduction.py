"""First steps with the official clients of Cosmos DB for NoSQL: endpoint, connection string and programs that run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from asterism.apis.door_spec import Introduction, Surroundings
from asterism.apis.snippets import SnippetSource, render_snippets

if TYPE_CHECKING:
    from asterism.apis.nosql.spec import NoSqlSettings

_FOLDER = Path(__file__).with_name("snippets")
_SOURCES = (
    SnippetSource("Python", "pip install azure-cosmos", "python.txt"),
    SnippetSource("JavaScript", "npm install @azure/cosmos", "javascript.txt"),
    # Builds fail without a reference to Newtonsoft.Json, which the package no longer brings.
    SnippetSource(
        "C#", "dotnet add package Microsoft.Azure.Cosmos && dotnet add package Newtonsoft.Json", "csharp.txt"
    ),
    SnippetSource("Java", "com.azure:azure-cosmos:4.83.0", "java.txt"),
    SnippetSource("Go", "go get github.com/Azure/azure-sdk-for-go/sdk/data/azcosmos", "go.txt"),
)


def introduce(_: NoSqlSettings, server: Surroundings, account: str, key: str) -> Introduction:
    """`account` is only the title's: accounts share the port, and a request belongs to the account of its key."""
    endpoint = server.endpoints["nosql"]
    return Introduction(
        f"Cosmos DB for NoSQL, account {account}",
        endpoints=[("Endpoint", endpoint.url)],
        connection_strings=[("Connection string", f"AccountEndpoint={endpoint.url};AccountKey={key};")],
        snippets=render_snippets(
            _SOURCES, _FOLDER, is_encrypted=endpoint.is_encrypted, values={"ENDPOINT": endpoint.url, "KEY": key}
        ),
    )
