"""First steps with the official clients for blobs: endpoint, connection string and programs that run."""

from __future__ import annotations

from pathlib import Path

from asterism.apis.door_spec import Introduction, Surroundings
from asterism.apis.snippets import SnippetSource, render_snippets
from asterism.apis.storage.spec_texts import connection_text

_FOLDER = Path(__file__).with_name("snippets")
_SOURCES = (
    SnippetSource("Python", "pip install azure-storage-blob", "python.txt"),
    SnippetSource("JavaScript", "npm install @azure/storage-blob", "javascript.txt"),
    SnippetSource("C#", "dotnet add package Azure.Storage.Blobs", "csharp.txt"),
    SnippetSource("Java", "com.azure:azure-storage-blob:12.31.1", "java.txt"),
    SnippetSource("Go", "go get github.com/Azure/azure-sdk-for-go/sdk/storage/azblob", "go.txt"),
)


def introduce(server: Surroundings, account: str, key: str) -> Introduction:
    endpoint = server.endpoints["blob"]
    string = connection_text(account, key, {"Blob": endpoint})
    return Introduction(
        f"Blobs, account {account}",
        endpoints=[("Blob storage", f"{endpoint.url}{account}")],
        connection_strings=[("Connection string", string)],
        snippets=render_snippets(
            _SOURCES, _FOLDER, is_encrypted=endpoint.is_encrypted, values={"CONNECTION_STRING": string}
        ),
    )
