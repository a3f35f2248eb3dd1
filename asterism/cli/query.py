"""`asterism query`."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Annotated, Any

import typer

from asterism.cli import options
from asterism.cli.failure import CommandFailed

QUERY_EXAMPLES = """[bold]Examples[/bold]

Some items, as a table:\n
  asterism query shop orders "SELECT TOP 5 * FROM c"

With a value for a parameter, and the cost:\n
  asterism query shop orders "SELECT * FROM c WHERE c.total > @least" -p least=100 --explain

One JSON text per line, for programs:\n
  asterism query shop orders "SELECT VALUE c.id FROM c" --format json"""

# The server's maximum of results in a page.
PAGE_ITEMS = 1000
# Requests to a partition that has spent its request units are retried for this long.
THROTTLED_SECONDS_MAX = 60.0
# Properties that the server adds to an item; omitted from tables, not from JSON.
SYSTEM_PROPERTIES = ("_rid", "_self", "_etag", "_attachments", "_ts")
# Length of the part of a long query that is shown around an error: a terminal's line.
MARKED_CHARACTERS = 100

Text = Annotated[str, typer.Argument(metavar="QUERY", help="SELECT …", show_default=False)]
Parameters = Annotated[
    list[str] | None,
    typer.Option(
        "--parameters",
        "-p",
        metavar="NAME=VALUE",
        help="A value for @NAME, as JSON or plain text; or all of them as one JSON object. Repeatable.",
        show_default=False,
    ),
]
Explain = Annotated[bool, typer.Option("--explain", help="Also show the cost: partitions, indexes, items, RU.")]
ResultLimit = Annotated[
    int | None, typer.Option(min=1, metavar="N", help="Maximum number of results.", show_default=False)
]


def query(
    database: options.Database,
    container: options.Container,
    text: Text,
    parameters: Parameters = None,
    explain: Explain = False,
    output_format: options.OutputFormat = options.Format.TABLE,
    limit: ResultLimit = None,
    endpoint: options.Endpoint = options.DEFAULT_ENDPOINT,
    key: options.Key = options.DEFAULT_KEY,
    insecure: options.Insecure = False,
) -> None:
    """Query a container's items, over all of its partitions."""
    from asterism.cli.client import AdminClient, Refused

    body = {"database": database, "container": container, "query": text, "parameters": read_parameters(parameters)}
    pages = _pages(AdminClient(endpoint, key, insecure=insecure), {**body, "explain": explain}, limit)
    explained: dict[str, Any] = {}
    try:
        results = _results(pages, explained)
        if output_format is options.Format.JSON:
            for result in results:
                typer.echo(json.dumps(result, ensure_ascii=False))
        else:
            print_results(list(results))
    except Refused as refused:
        raise _with_mark(refused, text) from None
    if explain:
        print_explanation(explained)


def read_parameters(given: list[str] | None) -> list[dict[str, object]]:
    values: dict[str, object] = {}
    for text in given or []:
        if text.lstrip().startswith("{"):
            values |= _json_object(text)
            continue
        name, equals, value = text.partition("=")
        if not equals or not name.strip("@ "):
            raise CommandFailed(f"the parameter {text!r} is neither NAME=VALUE nor a JSON object")
        values[name.strip()] = _value(value)
    return [{"name": f"@{name.removeprefix('@')}", "value": value} for name, value in values.items()]


def _json_object(text: str) -> dict[str, object]:
    try:
        parameters: dict[str, object] = json.loads(text)
    except ValueError as error:
        raise CommandFailed(f"the parameters are not JSON: {error}") from None
    return parameters


def _value(text: str) -> object:
    try:
        value: object = json.loads(text)
    except ValueError:
        return text
    return value


def _pages(client: Any, body: dict[str, Any], limit: int | None) -> Iterator[dict[str, Any]]:
    continuation: str | None = None
    remaining = limit
    while remaining is None or remaining > 0:
        max_items = PAGE_ITEMS if remaining is None else min(remaining, PAGE_ITEMS)
        page = _page(client, {**body, "max_items": max_items, "continuation": continuation})
        yield page
        continuation = page["continuation"]
        if continuation is None:
            return
        remaining = None if remaining is None else remaining - len(page["results"])


def _page(client: Any, body: dict[str, Any]) -> dict[str, Any]:
    """Return one page; wait while the request is throttled."""
    from asterism.cli.client import Refused

    give_up_at = time.monotonic() + THROTTLED_SECONDS_MAX
    while True:
        try:
            page: dict[str, Any] = client.post("query", body)
        except Refused as refused:
            wait_seconds = refused.reply.get("retry_after_seconds")
            if wait_seconds is None or time.monotonic() + wait_seconds > give_up_at:
                raise
            time.sleep(wait_seconds)
        else:
            return page


def _results(pages: Iterator[dict[str, Any]], explained: dict[str, Any]) -> Iterator[Any]:
    """Yield the results of all pages; add their costs up in `explained`."""
    for page in pages:
        for name, value in page.get("explanation", {}).items():
            is_new = name not in explained or name in ("of_partitions", "logical_partitions")
            explained[name] = value if is_new else _together(explained[name], value)
        yield from page["results"]


def _together(known: Any, more: Any) -> Any:
    match more:
        case bool():
            return known or more
        case str():
            return more
        case list():
            return sorted({*known, *more}, key=lambda name: (len(name), name))
        case _:
            return round(known + more, 2)


def print_results(results: list[Any]) -> None:
    from asterism.cli.tables import print_table

    if not results:
        typer.echo("No results.")
    elif all(isinstance(result, dict) for result in results):
        names = list(dict.fromkeys(name for result in results for name in result))
        if all(name in names for name in SYSTEM_PROPERTIES):
            names = [name for name in names if name not in SYSTEM_PROPERTIES]
        rows = [[_cell(result[name]) if name in result else "" for name in names] for result in results]
        print_table("", names, rows)
    else:
        print_table("", ["result"], [[_cell(result)] for result in results])


def _cell(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def print_explanation(explained: dict[str, Any]) -> None:
    """Print to standard error: a program that reads the output gets the results alone."""
    from asterism.cli.tables import print_table, readable_bytes

    indexes = ", ".join(explained["indexes"])
    logical = explained["logical_partitions"]
    rows = [
        ["kind", explained["kind"]],
        ["partitions read", f"{', '.join(explained['partitions']) or 'none'} (of {explained['of_partitions']})"],
        ["logical partitions", "all" if logical is None else f"{logical:,}"],
        ["indexes", indexes or "none"],
        ["scanned", "yes" if explained["scan"] else "no"],
        ["index lookups", f"{explained['index_lookups']:,}"],
        ["items loaded", f"{explained['items_loaded']:,} ({readable_bytes(explained['bytes_loaded'])})"],
        ["results", f"{explained['results']:,}"],
        ["request units", f"{explained['request_units']:,.2f}"],
    ]
    print_table("Cost", ["", "value"], rows, to_errors=True)


def _with_mark(refused: Any, text: str) -> CommandFailed:
    """Return the refusal with the position of the error in the query, if it has one."""
    position = refused.reply.get("query_error")
    if not isinstance(position, dict):
        return CommandFailed(str(refused))
    return CommandFailed(f"{position['code']}: {refused}", detail=marked(text, position["start"], position["end"]))


def marked(text: str, start: int, end: int) -> str:
    """Return the line of a query that has an error, and below it a mark under the error."""
    start = min(max(start, 0), len(text))
    line_start = text.rfind("\n", 0, start) + 1
    line_end = text.find("\n", start)
    line_end = len(text) if line_end < 0 else line_end
    shown_start = max(line_start, start - MARKED_CHARACTERS // 2)
    shown_end = min(line_end, shown_start + MARKED_CHARACTERS)
    # One column per character, or the mark would be misplaced.
    line = "".join(character if character.isprintable() else " " for character in text[shown_start:shown_end])
    return f"  {line}\n  {' ' * (start - shown_start)}{'^' * max(1, min(end, shown_end) - start)}"
