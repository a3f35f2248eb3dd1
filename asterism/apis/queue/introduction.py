"""First steps with the official clients for queues: the endpoint, a connection string and programs that run."""

from __future__ import annotations

from pathlib import Path

from asterism.apis.door_spec import Introduction, Surroundings
from asterism.apis.snippets import SnippetSource, render_snippets
from asterism.apis.storage.spec_texts import connection_text

_FOLDER = Path(__file__).with_name("snippets")
_SOURCES = (
    SnippetSource("Python", "pip install azure-storage-queue", "python.txt"),
    SnippetSource("JavaScript", "npm install @azure/storage-queue", "javascript.txt"),
    SnippetSource("C#", "dotnet add package Azure.Storage.Queues", "csharp.txt"),
    SnippetSource("Java", "com.azure:azure-storage-queue:12.26.0", "java.txt"),
    SnippetSource("Go", "go get github.com/Azure/azure-sdk-for-go/sdk/storage/azqueue", "go.txt"),
)


def introduce(server: Surroundings, account: str, key: str) -> Introduction:
    endpoint = server.endpoints["queue"]
    text = connection_text(account, key, {"Queue": endpoint})
    return Introduction(
        f"Queues, account {account}",
        endpoints=[("Queue storage", f"{endpoint.url}{account}")],
        connection_strings=[("Queue storage", text)],
        snippets=render_snippets(
            _SOURCES, _FOLDER, is_encrypted=endpoint.is_encrypted, values={"CONNECTION_STRING": text}
        ),
    )
