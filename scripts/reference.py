"""Write docs/reference.md: ports, options, environment variables and limits, from the code that declares them.

`make reference` runs it; a test fails while the page differs from what it writes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import typer.main

from asterism.apis.door_spec import DoorSpec
from asterism.apis.settings import Option, options_of
from asterism.cli.main import app
from asterism.limits import GIB, KIB, MIB, Limits, limit_helps
from asterism.server.configure import serve_options
from asterism.server.doors import DOORS
from asterism.server.limit_options import limit_names

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference.md"

HEAD = """# Reference

Ports, options, environment variables and limits of the server and of each of its doors, which `--apis` chooses by name.
Made by `make reference` from the code that declares them; do not edit it by hand."""

PORTS_HEAD = """## Ports

0 in place of a port lets the operating system choose one. Every HTTP port answers the commands of operators as well,
and the readiness probe, below `/_asterism/`."""

OPTIONS_HEAD = """## Options of `asterism serve`

An option counts before its environment variable. Options that may be repeated have their values in one variable, with
spaces between them."""

LIMITS_HEAD = """## Limits

`--limit NAME=VALUE` changes a limit, `ASTERISM_LIMIT` several of them, with spaces between. Bytes may end in KB, MB or
GB (powers of 1,024)."""

# By the words that the names of limits have in them, the first that fits.
UNITS = {
    "megabytes": "MB",
    "bytes": "bytes",
    "ru_per_second": "RU/s",
    "seconds": "seconds",
    "connections": "connections",
    "steps": "steps",
    "loops": "loops",
    "values": "values",
    "entities": "entities",
    "subscriptions": "subscriptions",
    "filters": "filters",
    "characters": "characters",
    "links": "links",
    "receivers": "receivers",
    "messages": "messages",
    "partitions": "partitions",
    "groups": "groups",
}


def page() -> str:
    parts = [
        HEAD,
        _doors(DOORS),
        PORTS_HEAD,
        _ports(DOORS),
        OPTIONS_HEAD,
        *_options(DOORS),
        LIMITS_HEAD,
        *_limits(DOORS),
        "## Environment variables of the other commands",
        _command_variables(),
    ]
    return "\n\n".join(parts) + "\n"


def _doors(doors: Sequence[DoorSpec[Any]]) -> str:
    rows = [[f"`{door.name}`", door.help, ", ".join(door.accounts)] for door in doors]
    return _table(["Door", "Protocol", "Kinds of accounts"], rows)


def _ports(doors: Sequence[DoorSpec[Any]]) -> str:
    rows = [
        [
            f"`{door.name}`",
            f"`{port.flag}`",
            f"`{port.option.environment_variable}`",
            str(port.default),
            port.transport,
            port.encryption.replace("--https", "`--https`"),
            f"`{_limit_name(port.request_limit, door)}`",
            _cell(port.help),
        ]
        for door in doors
        for port in door.ports
    ]
    return _table(["Door", "Option", "Variable", "Default", "Transport", "Encrypted", "Request limit", "Meaning"], rows)


def _options(doors: Sequence[DoorSpec[Any]]) -> Iterable[str]:
    of_doors = {option.name for door in doors for option in door.options}
    yield "### The server"
    yield _option_table([option for option in serve_options(doors) if option.name not in of_doors])
    for door in doors:
        options = list(options_of(door.settings).values())
        if options:
            yield f"### `{door.name}`: {door.help}"
            yield _option_table(options)


def _option_table(options: Sequence[Option]) -> str:
    rows = [
        [f"`{_usage(option)}`", f"`{option.environment_variable}`", _default(option), _meaning(option)]
        for option in options
    ]
    return _table(["Option", "Variable", "Default", "Meaning"], rows)


def _usage(option: Option) -> str:
    return option.flag if option.kind is bool else f"{option.flag} {option.metavar or 'TEXT'}"


def _default(option: Option) -> str:
    if option.default_help is not None:
        return option.default_help
    return "" if option.default in (None, False) else f"`{option.default}`"


def _meaning(option: Option) -> str:
    # Their names are the next section.
    help = option.help.partition(" Names: ")[0] if option.name == "limit" else option.help
    bounds = [
        f"{word} {bound}" for word, bound in (("from", option.minimum), ("to", option.maximum)) if bound is not None
    ]
    return _cell(f"{help} {' '.join(bounds).capitalize()}." if bounds else help)


def _limits(doors: Sequence[DoorSpec[Any]]) -> Iterable[str]:
    yield "### The database"
    yield _limit_table(Limits)
    for door in doors:
        if door.limits:
            yield f"### `{door.name}`: {door.help}"
            yield _limit_table(door.settings)


def _limit_table(declared_in: type[Any]) -> str:
    defaults, helps = declared_in(), limit_helps(declared_in)
    rows = [
        [f"`{name}`", *_amount(field, getattr(defaults, field)), helps[field]]
        for name, field in limit_names(declared_in).items()
    ]
    return _table(["Limit", "Default", "Unit", "Meaning"], rows)


def _amount(field: str, value: int) -> list[str]:
    unit = next(unit for word, unit in UNITS.items() if word in field)
    if unit == "bytes":
        size, suffix = next((size, suffix) for size, suffix in ((GIB, "GB"), (MIB, "MB"), (KIB, "KB")) if value >= size)
        if value % size == 0:
            return [f"{value // size}{suffix}", unit]
    return [f"{value:,}", unit]


def _limit_name(field: str, door: DoorSpec[Any]) -> str:
    declared_in = door.settings if field in door.limits else Limits
    return next(name for name, known in limit_names(declared_in).items() if known == field)


def _command_variables() -> str:
    commands: dict[str, list[str]] = {}
    for name, command in vars(typer.main.get_command(app))["commands"].items():
        for parameter in command.params:
            if name != "serve" and parameter.envvar:
                commands.setdefault(str(parameter.envvar), []).append(f"`{name}`")
    return _table(["Variable", "Commands"], [[f"`{name}`", ", ".join(using)] for name, using in commands.items()])


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(text: str) -> str:
    """Keep the text from ending its cell, or from being read as a link or as emphasis."""
    return text.replace("|", "\\|").replace("[", "\\[").replace("*", "\\*")


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
