"""First steps with MongoDB's drivers and shell: the endpoint, a connection string and programs that run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from asterism.apis.door_spec import Endpoint, Introduction, Surroundings
from asterism.apis.snippets import SnippetSource, render_snippets

if TYPE_CHECKING:
    from asterism.apis.mongo.settings import MongoSettings

_FOLDER = Path(__file__).with_name("snippets")
_SOURCES = (
    SnippetSource("Python", "pip install pymongo", "python.txt"),
    SnippetSource("JavaScript", "npm install mongodb", "javascript.txt"),
    SnippetSource("Shell", "mongosh", "shell.txt"),
)


def introduce(_: MongoSettings, server: Surroundings, account: str, key: str) -> Introduction:
    place = server.endpoints["mongo"]
    string = _connection_string(place, account, key)
    return Introduction(
        "MongoDB",
        endpoints=[("Endpoint", f"mongodb://{place.address}/?replicaSet=globaldb")],
        connection_strings=[("Connection string", string)],
        snippets=render_snippets(
            _SOURCES, _FOLDER, is_encrypted=place.is_encrypted, values={"CONNECTION_STRING": string}
        ),
    )


def _connection_string(place: Endpoint, account: str, key: str) -> str:
    # Keys are base64, whose characters beyond letters and digits have a meaning in addresses.
    tls = "&tls=true" if place.is_encrypted else ""
    return f"mongodb://{account}:{quote(key, safe='')}@{place.address}/?replicaSet=globaldb{tls}"
