"""`asterism synthetic-key`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from asterism.cli import options
from asterism.cli.failure import CommandFailed
from asterism.cli.key_rules import rule_from_options, rules_of
from asterism.cli.options import DEFAULT_ENDPOINT, DEFAULT_KEY, Endpoint, Format, Insecure, Key, OutputFormat

if TYPE_CHECKING:
    from asterism.cli.client import AdminClient

SYNTHETIC_KEY_EXAMPLES = """[bold]Examples[/bold]

Concatenate: abc-123-2018 of a device and a year:\n
  asterism synthetic-key create iot readings --path /pk --part /deviceId --part /year

A day of a time stamp, then one of 400 suffixes by a draw: writes of a day spread, a read by id asks all 400:\n
  asterism synthetic-key create iot events --path /pk --part /at:day --random 400

The suffix by a hash of the vehicle number: a reader that knows the number asks one:\n
  asterism synthetic-key create iot trips --path /pk --part /day --hash 100 --of /vin

See what a rule gives before a container has it, and raise the count later:\n
  asterism synthetic-key explain --path /pk --part /at:month --item '{"at": "2026-01-31T09:30:00Z"}'\n
  asterism synthetic-key raise iot trips --count 400

Clients write plain items; the server fills /pk. They read with its value, or with the values that it is made of:\n
  container.read_item("1", partition_key=["2026-01-31", "WDB123"])"""

synthetic_key = typer.Typer(
    no_args_is_help=True,
    help="Declare partition keys that the server computes from other properties, and see what they give.",
)

_RULE_PANEL = "The rule"
Path = Annotated[
    str, typer.Option("--path", metavar="/PATH", help="The property that the server fills.", show_default=False)
]
Part = Annotated[
    list[str] | None,
    typer.Option(
        "--part",
        metavar="/PATH[:FORM]",
        rich_help_panel=_RULE_PANEL,
        help="A property that the key is made of, in order. FORM: hour, day or month of a time stamp; 6d for six "
        "digits; 2f for two decimals.",
        show_default=False,
    ),
]
Separator = Annotated[
    str, typer.Option("--separator", metavar="TEXT", rich_help_panel=_RULE_PANEL, help="Stands between the parts.")
]
Random = Annotated[
    int | None,
    typer.Option("--random", metavar="N", rich_help_panel=_RULE_PANEL, help="Add one of N suffixes by a draw."),
]
Hash = Annotated[
    int | None,
    typer.Option("--hash", metavar="N", rich_help_panel=_RULE_PANEL, help="Add one of N suffixes by the hash of --of."),
]
Of = Annotated[
    str | None, typer.Option("--of", metavar="/PATH", rich_help_panel=_RULE_PANEL, help="The property for --hash.")
]
Absent = Annotated[
    bool,
    typer.Option(
        "--absent",
        rich_help_panel=_RULE_PANEL,
        help="Store items that lack a property without a key value; otherwise they are refused.",
    ),
]
Rule = Annotated[
    str | None,
    typer.Option(
        "--rule", metavar="JSON", rich_help_panel=_RULE_PANEL, help="The rule as containers have it, instead of these."
    ),
]


@synthetic_key.command(epilog=SYNTHETIC_KEY_EXAMPLES, no_args_is_help=True)
def create(
    database: options.Database,
    container: options.Container,
    path: Path,
    part: Part = None,
    separator: Separator = "-",
    random: Random = None,
    hash_: Hash = None,
    of: Of = None,
    absent: Absent = False,
    rule: Rule = None,
    ru: Annotated[int | None, typer.Option("--ru", metavar="RU/S", help="Its throughput; 400 without.")] = None,
    endpoint: Endpoint = DEFAULT_ENDPOINT,
    key: Key = DEFAULT_KEY,
    insecure: Insecure = False,
) -> None:
    """Create a container whose partition key is computed, and its database if it does not exist."""
    from asterism.cli.data_client import DataClient

    partition_key = _partition_key(path, rule, part, separator, random, hash_, of, absent=absent)
    client = DataClient(endpoint, key, insecure=insecure)
    made = client.ask("POST", "dbs", {"id": database}, type_="dbs", link="")
    if made.status not in (201, 409):
        raise CommandFailed(made.message)
    body = {"id": container, "partitionKey": partition_key}
    headers = {} if ru is None else {"x-ms-offer-throughput": str(ru)}
    client.need("POST", f"dbs/{database}/colls", body, type_="colls", link=f"dbs/{database}", headers=headers)
    typer.echo(f"{database}/{container} is there. Write plain items: the server fills {path}.")


@synthetic_key.command(no_args_is_help=True)
def show(
    database: options.Database,
    container: options.Container,
    output_format: OutputFormat = Format.TABLE,
    endpoint: Endpoint = DEFAULT_ENDPOINT,
    key: Key = DEFAULT_KEY,
    insecure: Insecure = False,
) -> None:
    """Show the rules of a container, in words or as JSON."""
    from asterism.cli.client import AdminClient

    shown = _of_container(AdminClient(endpoint, key, insecure=insecure), database, container)
    if output_format is Format.JSON:
        typer.echo(json.dumps(shown["partition_key"], ensure_ascii=False))
        return
    for path, words in shown["synthetic_key_words"].items():
        typer.echo(f"{path}: {words}")


@synthetic_key.command("raise", no_args_is_help=True)
def raise_count(
    database: options.Database,
    container: options.Container,
    count: Annotated[int, typer.Option("--count", metavar="N", help="The new number of suffixes, not a lower one.")],
    endpoint: Endpoint = DEFAULT_ENDPOINT,
    key: Key = DEFAULT_KEY,
    insecure: Insecure = False,
) -> None:
    """Raise the count of a suffix. Nothing is moved: earlier items keep their keys, and are found by them."""
    from asterism.cli.data_client import DataClient

    client = DataClient(endpoint, key, insecure=insecure)
    link = f"dbs/{database}/colls/{container}"
    settings = client.need("GET", link, type_="colls", link=link).body
    rules = settings["partitionKey"].get("synthetic", {})
    suffixed = next((path for path, rule in rules.items() if "suffix" in rule), None)
    if suffixed is None:
        raise CommandFailed(f"the partition key of {database}/{container} has no suffix whose count could be raised")
    rules[suffixed]["suffix"]["count"] = count
    client.need("PUT", link, settings, type_="colls", link=link)
    typer.echo(f"{suffixed} has {count:,} suffixes now.")


@synthetic_key.command(no_args_is_help=True)
def explain(
    database: Annotated[str | None, typer.Argument(metavar="[DATABASE]", show_default=False)] = None,
    container: Annotated[
        str | None, typer.Argument(metavar="[CONTAINER]", help="A container with rules, or give a rule.")
    ] = None,
    path: Path = "/pk",
    part: Part = None,
    separator: Separator = "-",
    random: Random = None,
    hash_: Hash = None,
    of: Of = None,
    absent: Absent = False,
    rule: Rule = None,
    item: Annotated[
        str | None, typer.Option("--item", metavar="JSON", help="An item whose keys are to be shown.")
    ] = None,
    output_format: OutputFormat = Format.TABLE,
    endpoint: Endpoint = DEFAULT_ENDPOINT,
    key: Key = DEFAULT_KEY,
    insecure: Insecure = False,
) -> None:
    """Explain a rule, and the keys and partitions that it gives to an item. Nothing is changed."""
    from asterism.cli.client import AdminClient

    client = AdminClient(endpoint, key, insecure=insecure)
    ranges: list[dict[str, Any]] = []
    if database is not None and container is not None:
        shown = _of_container(client, database, container)
        partition_key, ranges = shown["partition_key"], shown["partitions"]
    else:
        partition_key = _partition_key(path, rule, part, separator, random, hash_, of, absent=absent)
    asked: dict[str, Any] = {"partition_key": partition_key}
    if item is not None:
        asked["item"] = _json_object(item)
    explained = client.post("synthetic-key/explain", asked)
    if not explained["allowed"]:
        raise CommandFailed(explained["reason"])
    if output_format is Format.JSON:
        typer.echo(json.dumps(explained, ensure_ascii=False))
        return
    for computed, words in explained["words"].items():
        typer.echo(f"{computed}: {words}")
    if explained["item"] is not None:
        _show_item(explained["item"], partition_key, ranges)


def _show_item(explained: dict[str, Any], partition_key: dict[str, Any], ranges: list[dict[str, Any]]) -> None:
    if explained["reason"] is not None:
        raise CommandFailed(explained["reason"])
    keys, count = explained["keys"], explained["key_count"]
    more = f" … ({count:,} in all)" if count > len(keys) else ""
    typer.echo(f"keys: {', '.join(json.dumps(shown, ensure_ascii=False) for shown in keys)}{more}")
    if ranges and count == 1:
        typer.echo(f"physical partition: {_partition_of(keys[0], partition_key, ranges)}")
    if count > 1:
        drawn = "one of them, by a draw" if explained.get("is_drawn", True) else "the first"
        typer.echo(f"a new item gets {drawn}; a read that names none of them asks all {count:,}, and pays for each")


def _partition_of(key: list[Any], partition_key: dict[str, Any], ranges: list[dict[str, Any]]) -> str:
    from asterism.partitioning.effective_key import effective_key, to_text
    from asterism.partitioning.partition_key import PartitionKeyDefinition
    from asterism.values.undefined import UNDEFINED

    components = tuple(UNDEFINED if value == {} else value for value in key)
    point = to_text(effective_key(PartitionKeyDefinition.parse(partition_key), components))
    return next((str(found["id"]) for found in ranges if found["min"] <= point < found["max"]), "unknown")


def _of_container(client: AdminClient, database: str, container: str) -> dict[str, Any]:
    shown = client.get("partitions", database=database, container=container, details="false")
    if not shown.get("synthetic_key_words"):
        raise CommandFailed(
            f"the partition key of {database}/{container} is not synthetic. Declare it with `asterism synthetic-key "
            "create`, or copy the container with `asterism rekey --synthetic`."
        )
    return shown


def _partition_key(
    path: str,
    rule: str | None,
    parts: list[str] | None,
    separator: str,
    random: int | None,
    hash_: int | None,
    of: str | None,
    *,
    absent: bool,
) -> dict[str, Any]:
    if rule is not None:
        rules = rules_of(rule, (path,))
    else:
        rules = {path: rule_from_options(parts or [], separator, random, hash_, of, absent=absent)}
    return {"paths": [path], "kind": "Hash", "version": 2, "synthetic": rules}


def _json_object(text: str) -> dict[str, Any]:
    try:
        given = json.loads(text)
    except ValueError as error:
        raise CommandFailed(f"the item is not JSON: {error}") from None
    if not isinstance(given, dict):
        raise CommandFailed("the item is not a JSON object")
    return given
