"""Options and arguments that `asterism hubs` and `asterism bus` share."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from asterism.cli.failure import CommandFailed

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from asterism.cli.client import AdminClient

# The namespace that a server has without configuration.
DEFAULT_NAMESPACE: Final = "asterism"
# Rows of a page of the server's list.
_PAGE_ROWS: Final = 500

Namespace = Annotated[str, typer.Option("--namespace", metavar="NAME", help="The namespace, which is an account.")]
Search = Annotated[str, typer.Option("--search", metavar="TEXT", help="Only those with this text in their name.")]
PropertyTexts = Annotated[
    list[str] | None,
    typer.Option(
        "--property",
        metavar="NAME=VALUE",
        help="An application property; may be repeated. A value that is JSON is a number or a truth value.",
    ),
]
ContentType = Annotated[
    str | None, typer.Option("--content-type", metavar="TYPE", help="Such as application/json.", show_default=False)
]


def listed_entities(client: AdminClient, namespace: str, *, kinds: str, search: str) -> Iterator[dict[str, Any]]:
    """Yield the entities of some kinds, page by page."""
    offset, total = 0, 1
    while offset < total:
        page = client.get(
            "messaging/entities",
            namespace=namespace,
            kinds=kinds,
            search=search,
            offset=str(offset),
            limit=str(_PAGE_ROWS),
        )
        yield from page["entities"]
        offset, total = offset + _PAGE_ROWS, page["total"]


def read_properties(texts: Iterable[str]) -> dict[str, Any]:
    """Return application properties: numbers and truth values where a value is JSON of these, otherwise texts."""
    properties = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not name or not equals:
            raise CommandFailed(f"{text!r} is no property: write NAME=VALUE")
        properties[name] = _typed(value)
    return properties


def _typed(text: str) -> str | int | float | bool:
    try:
        value = json.loads(text, parse_constant=lambda constant: constant)
    except ValueError:
        return text
    return value if isinstance(value, bool | int | float) else text
